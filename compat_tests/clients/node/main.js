// What applications in Node.js do, with kafkajs: topics, producing, reading by assignment is not in
// it (its consumer needs groups), so records are read by offset requests and by the admin client.
//
//   node main.js BOOTSTRAP TOPIC
"use strict";

const { CompressionTypes, Kafka, logLevel } = require("kafkajs");

const BEGIN_MS = 1700000000000;

async function tell(bootstrap, topic) {
  const kafka = new Kafka({ brokers: [bootstrap], logLevel: logLevel.NOTHING });
  const admin = kafka.admin();
  await admin.connect();
  const configEntries = [{ name: "retention.ms", value: "-1" }];
  const asked = { topic, numPartitions: 2, replicationFactor: 1, configEntries };
  console.log("created:", await admin.createTopics({ topics: [asked], waitForLeaders: true }));
  console.log("created again:", await admin.createTopics({ topics: [asked] }));
  for (const idempotent of [false, true]) {
    await produce(kafka, topic, idempotent);
  }
  await administer(admin, topic);
  await admin.disconnect();
}

async function produce(kafka, topic, idempotent) {
  const producer = kafka.producer({ idempotent, maxInFlightRequests: 1 });
  await producer.connect();
  for (const compression of [CompressionTypes.None, CompressionTypes.GZIP]) {
    const messages = [0, 1, 2].map((at) => ({
      key: `key-${at}`,
      value: at === 2 ? null : "x".repeat(100 * (at + 1)),
      partition: 0,
      timestamp: String(BEGIN_MS + 1000 * at),
      headers: { h: String(at) },
    }));
    const done = await producer.send({ topic, messages, compression, acks: -1 });
    console.log("produced:", done.map((each) => [each.errorCode, each.baseOffset]));
  }
  await producer.disconnect();
}

async function administer(admin, topic) {
  console.log("offsets:", sorted(await admin.fetchTopicOffsets(topic)));
  const atTime = await admin.fetchTopicOffsetsByTimestamp(topic, BEGIN_MS + 1500);
  console.log("offsets at a time:", sorted(atTime));
  await admin.createPartitions({ topicPartitions: [{ topic, count: 3 }] });
  const metadata = await admin.fetchTopicMetadata({ topics: [topic] });
  console.log("partitions:", metadata.topics[0].partitions.length);
  const entries = [{ name: "max.message.bytes", value: "123456" }];
  await admin.alterConfigs({ resources: [{ type: 2, name: topic, configEntries: entries }] });
  const asked = { resources: [{ type: 2, name: topic, configNames: ["max.message.bytes"] }] };
  let value;
  // A change takes a moment to be seen.
  for (let tries = 200; tries > 0 && value !== "123456"; tries--) {
    const described = await admin.describeConfigs(asked);
    value = described.resources[0].configEntries[0].configValue;
  }
  console.log("described:", value);
  await admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: "2" }] });
  console.log("offsets at last:", sorted(await admin.fetchTopicOffsets(topic)));
  console.log("brokers:", (await admin.describeCluster()).brokers.length);
  await admin.deleteTopics({ topics: [topic] });
}

function sorted(offsets) {
  const inOrder = [...offsets].sort((a, b) => a.partition - b.partition);
  return inOrder.map((each) => JSON.stringify(each)).join(" ");
}

tell(process.argv[2], process.argv[3]).then(
  () => console.log("told"),
  (error) => {
    console.log("failed:", error.message);
    process.exitCode = 1;
  },
);
