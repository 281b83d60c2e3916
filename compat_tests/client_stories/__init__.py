"""What stock Python clients do all day, told to Ottla (`make test`) and to Apache Kafka alike."""
