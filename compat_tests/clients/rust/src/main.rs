//! What applications in Rust do, with rskafka: topics, every codec, reading by offset and by time.
//! It prints what it sees, for a test to compare.
//!
//!     clients BOOTSTRAP TOPIC

use std::collections::BTreeMap;

use chrono::{DateTime, TimeZone, Utc};
use rskafka::client::partition::{Compression, OffsetAt, PartitionClient, UnknownTopicHandling};
use rskafka::client::{error::Error, ClientBuilder};
use rskafka::record::Record;

fn time(number: i64) -> DateTime<Utc> {
    Utc.timestamp_millis_opt(Utc::now().timestamp_millis() - 60_000 + number).unwrap()
}

fn records(count: usize) -> Vec<Record> {
    (0..count)
        .map(|at| Record {
            key: Some(format!("key-{at}").into_bytes()),
            value: if at == 2 { None } else { Some(vec![b'x'; 100 * at]) },
            headers: BTreeMap::from([("h".to_owned(), vec![at as u8])]),
            timestamp: time(at as i64),
        })
        .collect()
}

async fn read_all(partition: &PartitionClient) -> Result<(), Error> {
    let end = partition.get_offset(OffsetAt::Latest).await?;
    let mut offset = partition.get_offset(OffsetAt::Earliest).await?;
    println!("from {offset} to {end}");
    while offset < end {
        let (found, high_watermark) =
            partition.fetch_records(offset, 1..1_000_000, 1_000).await?;
        for each in &found {
            println!("{} {:?} {:?}", each.offset, each.record.key, each.record.headers);
            offset = each.offset + 1;
        }
        println!("high watermark {high_watermark}");
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().collect();
    let (bootstrap, topic) = (arguments[1].clone(), arguments[2].clone());
    let client = ClientBuilder::new(vec![bootstrap]).build().await?;
    let controller = client.controller_client()?;
    controller.create_topic(&topic, 2, 1, 5_000).await?;
    println!("again: {}", controller.create_topic(&topic, 2, 1, 5_000).await.is_err());
    let partition = client.partition_client(&topic, 0, UnknownTopicHandling::Retry).await?;
    for codec in [
        Compression::NoCompression,
        Compression::Gzip,
        Compression::Lz4,
        Compression::Snappy,
        Compression::Zstd,
    ] {
        println!("{codec:?} at {:?}", partition.produce(records(5), codec).await?);
    }
    read_all(&partition).await?;
    partition.delete_records(7, 5_000).await?;
    read_all(&partition).await?;
    controller.delete_topic(&topic, 5_000).await?;
    println!("told");
    Ok(())
}
