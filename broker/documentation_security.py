"""What the configurations of security are for.

A name, and below it, indented, what it is for.
"""

SECURITY = """
authorizer.class.name
    The Java class that decides who may do what; empty: everybody may do everything.
client.quota.callback.class
    A Java class that decides on client quotas.
connection.failed.authentication.delay.ms
    How long a connection that failed to authenticate is kept waiting before it is closed.
connections.max.reauth.ms
    How long an authenticated connection may go on before it must authenticate again; 0: for ever.
delegation.token.expiry.check.interval.ms
    How often expired delegation tokens are removed.
delegation.token.expiry.time.ms
    How long a delegation token is valid unless it is renewed.
delegation.token.max.lifetime.ms
    How long a delegation token can be renewed.
delegation.token.secret.key
    The secret with which delegation tokens are signed.
principal.builder.class
    The Java class that makes a principal of what is known of a connection.
sasl.client.callback.handler.class
    A Java class that answers questions of the SASL client.
sasl.enabled.mechanisms
    The SASL mechanisms that clients may use.
sasl.jaas.config
    The login configuration of a listener's SASL mechanism.
sasl.kerberos.kinit.cmd
    The command that renews a Kerberos ticket.
sasl.kerberos.min.time.before.relogin
    How long after a Kerberos login the next may be tried.
sasl.kerberos.principal.to.local.rules
    Rules that make short names of Kerberos principals.
sasl.kerberos.service.name
    The Kerberos name under which brokers run.
sasl.kerberos.ticket.renew.jitter
    How much the time of a ticket's renewal varies.
sasl.kerberos.ticket.renew.window.factor
    After which part of its life a Kerberos ticket is renewed.
sasl.login.callback.handler.class
    A Java class that answers questions of the SASL login.
sasl.login.class
    A Java class that logs in.
sasl.login.connect.timeout.ms
    How long connecting to a login provider may take.
sasl.login.read.timeout.ms
    How long reading from a login provider may take.
sasl.login.refresh.buffer.seconds
    How long before its end a credential is renewed at the latest.
sasl.login.refresh.min.period.seconds
    How long a renewed credential is kept at least.
sasl.login.refresh.window.factor
    After which part of its life a credential is renewed.
sasl.login.refresh.window.jitter
    How much the time of a credential's renewal varies.
sasl.login.retry.backoff.max.ms
    The longest pause before another try at a login.
sasl.login.retry.backoff.ms
    The first pause before another try at a login.
sasl.mechanism.controller.protocol
    The SASL mechanism towards the controller.
sasl.mechanism.inter.broker.protocol
    The SASL mechanism between brokers.
sasl.oauthbearer.assertion.algorithm
    How assertions for OAuth are signed.
sasl.oauthbearer.assertion.claim.aud
    For whom an assertion for OAuth is.
sasl.oauthbearer.assertion.claim.exp.seconds
    How long an assertion for OAuth is valid.
sasl.oauthbearer.assertion.claim.iss
    Who makes an assertion for OAuth.
sasl.oauthbearer.assertion.claim.jti.include
    Whether each assertion for OAuth has an id of its own.
sasl.oauthbearer.assertion.claim.nbf.seconds
    How long before now an assertion for OAuth begins to be valid.
sasl.oauthbearer.assertion.claim.sub
    Of whom an assertion for OAuth speaks.
sasl.oauthbearer.assertion.file
    A file with an assertion that somebody else has made.
sasl.oauthbearer.assertion.private.key.file
    A file with the key that signs assertions.
sasl.oauthbearer.assertion.private.key.passphrase
    What opens the file with the key that signs assertions.
sasl.oauthbearer.assertion.template.file
    A file with further claims for assertions.
sasl.oauthbearer.client.credentials.client.id
    The id with which a token is asked for.
sasl.oauthbearer.client.credentials.client.secret
    The secret with which a token is asked for.
sasl.oauthbearer.clock.skew.seconds
    How far the clocks of this broker and of an OAuth provider may differ.
sasl.oauthbearer.expected.audience
    For whom a token must be.
sasl.oauthbearer.expected.issuer
    By whom a token must be made.
sasl.oauthbearer.jwks.endpoint.refresh.ms
    How often the keys of an OAuth provider are fetched anew.
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms
    The longest pause before its keys are asked for again.
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms
    The first pause before its keys are asked for again.
sasl.oauthbearer.jwks.endpoint.url
    Where the keys of an OAuth provider are found.
sasl.oauthbearer.jwt.retriever.class
    The Java class that fetches tokens.
sasl.oauthbearer.jwt.validator.class
    The Java class that checks tokens.
sasl.oauthbearer.scope
    What a token that is asked for must allow.
sasl.oauthbearer.scope.claim.name
    The name of the claim that says what a token allows.
sasl.oauthbearer.sub.claim.name
    The name of the claim that says whose a token is.
sasl.oauthbearer.token.endpoint.url
    Where tokens are asked for.
sasl.server.callback.handler.class
    A Java class that answers questions of the SASL server.
sasl.server.max.receive.size
    The largest message of a client that is not authenticated yet.
security.inter.broker.protocol
    The security protocol between brokers, where no listener is named for them.
security.providers
    Java classes that bring security algorithms.
ssl.allow.dn.changes
    Whether a new certificate may name somebody else.
ssl.allow.san.changes
    Whether a new certificate may name other hosts.
ssl.cipher.suites
    The ciphers that TLS may use; empty: all that the platform likes.
ssl.client.auth
    Whether clients must show a certificate, may, or are not asked.
ssl.enabled.protocols
    The versions of TLS that may be used.
ssl.endpoint.identification.algorithm
    How the host in a certificate is compared with the host that was called; empty: not at all.
ssl.engine.factory.class
    A Java class that makes TLS engines.
ssl.key.password
    What opens the private key.
ssl.keymanager.algorithm
    How Java manages keys.
ssl.keystore.certificate.chain
    The broker's certificates, as PEM.
ssl.keystore.key
    The broker's private key, as PEM.
ssl.keystore.location
    The file with the broker's key and certificates.
ssl.keystore.password
    What opens the file with the key.
ssl.keystore.type
    The format of the file with the key.
ssl.principal.mapping.rules
    Rules that make a name of the name in a client's certificate.
ssl.protocol
    The version of TLS that is preferred.
ssl.provider
    Whose TLS is used; none: the platform's.
ssl.secure.random.implementation
    Where TLS takes its randomness from.
ssl.trustmanager.algorithm
    How Java manages whom to trust.
ssl.truststore.certificates
    The certificates that are trusted, as PEM.
ssl.truststore.location
    The file with the certificates that are trusted.
ssl.truststore.password
    What opens the file with the certificates that are trusted.
ssl.truststore.type
    The format of that file.
"""
