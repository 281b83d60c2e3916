package main

import (
	"fmt"
	"time"

	"github.com/IBM/sarama"
)

func saramaConfig() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	config.Producer.Return.Successes = true
	config.Producer.Partitioner = sarama.NewManualPartitioner
	return config
}

func shopify(bootstrap, topic string) error {
	brokers := []string{bootstrap}
	admin, err := sarama.NewClusterAdmin(brokers, saramaConfig())
	if err != nil {
		return err
	}
	defer admin.Close()
	forEver := "-1"
	detail := &sarama.TopicDetail{
		NumPartitions:     partitions,
		ReplicationFactor: 1,
		ConfigEntries:     map[string]*string{"retention.ms": &forEver},
	}
	if err := admin.CreateTopic(topic, detail, false); err != nil {
		return err
	}
	fmt.Println("a topic that exists:", admin.CreateTopic(topic, detail, false))
	codecs := []sarama.CompressionCodec{
		sarama.CompressionNone, sarama.CompressionGZIP, sarama.CompressionSnappy,
		sarama.CompressionLZ4, sarama.CompressionZSTD,
	}
	for number, codec := range codecs {
		if err := saramaProduce(brokers, topic, number, codec); err != nil {
			return err
		}
	}
	if err := saramaConsume(brokers, topic); err != nil {
		return err
	}
	if err := admin.CreatePartitions(topic, 3, nil, false); err != nil {
		return err
	}
	described, err := admin.DescribeTopics([]string{topic})
	if err != nil {
		return err
	}
	fmt.Println("partitions:", len(described[0].Partitions))
	if err := admin.DeleteRecords(topic, map[int32]int64{0: 3}); err != nil {
		return err
	}
	return admin.DeleteTopic(topic)
}

func saramaProduce(
	brokers []string, topic string, number int, codec sarama.CompressionCodec,
) error {
	config := saramaConfig()
	config.Producer.Compression = codec
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Idempotent = number%2 == 0
	config.Net.MaxOpenRequests = 1
	producer, err := sarama.NewSyncProducer(brokers, config)
	if err != nil {
		return err
	}
	defer producer.Close()
	for at := range 4 {
		_, offset, err := producer.SendMessage(&sarama.ProducerMessage{
			Topic:     topic,
			Key:       sarama.StringEncoder(fmt.Sprintf("key-%d", at)),
			Value:     sarama.ByteEncoder(make([]byte, 100*(at+1))),
			Headers:   []sarama.RecordHeader{{Key: []byte("h"), Value: []byte{byte(at)}}},
			Timestamp: begin.Add(time.Duration(1000*number+at) * time.Millisecond),
		})
		if err != nil {
			return err
		}
		fmt.Println("produced at", offset)
	}
	return nil
}

func saramaConsume(brokers []string, topic string) error {
	client, err := sarama.NewClient(brokers, saramaConfig())
	if err != nil {
		return err
	}
	defer client.Close()
	for _, at := range []int64{sarama.OffsetOldest, sarama.OffsetNewest, begin.UnixMilli() + 2002} {
		offset, err := client.GetOffset(topic, 0, at)
		fmt.Println("offset for", at, "is", offset, err)
	}
	consumer, err := sarama.NewConsumerFromClient(client)
	if err != nil {
		return err
	}
	defer consumer.Close()
	reader, err := consumer.ConsumePartition(topic, 0, sarama.OffsetOldest)
	if err != nil {
		return err
	}
	defer reader.Close()
	for range 20 {
		select {
		case message := <-reader.Messages():
			headers := fmt.Sprint(len(message.Headers))
			show(message.Offset, message.Timestamp, message.Key, message.Value, headers)
		case <-time.After(time.Minute):
			return fmt.Errorf("no record came")
		}
	}
	return nil
}
