"""Ottla judged by others: Apache Kafka's own classes, tools and brokers, stock clients, Spark.

What is here may need Java, Maven, Docker or the network; `make compat` runs it.
"""
