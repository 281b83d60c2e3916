package main

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

func franz(bootstrap, topic string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(bootstrap))
	if err != nil {
		return err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	kept := map[string]*string{"retention.ms": kadm.StringPtr("-1")}
	if _, err := admin.CreateTopic(ctx, partitions, 1, kept, topic); err != nil {
		return err
	}
	_, err = admin.CreateTopic(ctx, partitions, 1, nil, topic)
	fmt.Println("a topic that exists:", err)
	codecs := []kgo.CompressionCodec{
		kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(),
		kgo.Lz4Compression(), kgo.ZstdCompression(),
	}
	for number, codec := range codecs {
		if err := franzProduce(ctx, bootstrap, topic, number, codec); err != nil {
			return err
		}
	}
	if err := franzConsume(ctx, bootstrap, topic, kgo.NewOffset().AtStart(), 20); err != nil {
		return err
	}
	later := kgo.NewOffset().AfterMilli(begin.UnixMilli() + 4_002)
	if err := franzConsume(ctx, bootstrap, topic, later, 1); err != nil {
		return err
	}
	return franzAdminister(ctx, admin, topic)
}

func franzProduce(
	ctx context.Context, bootstrap, topic string, number int, codec kgo.CompressionCodec,
) error {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(bootstrap),
		kgo.ProducerBatchCompression(codec),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
	)
	if err != nil {
		return err
	}
	defer client.Close()
	var records []*kgo.Record
	for at := range 4 {
		records = append(records, &kgo.Record{
			Topic:     topic,
			Key:       fmt.Appendf(nil, "key-%d", at),
			Value:     make([]byte, 100*(at+1)),
			Headers:   []kgo.RecordHeader{{Key: "h", Value: []byte{byte(at)}}},
			Timestamp: begin.Add(time.Duration(1000*number+at) * time.Millisecond),
		})
	}
	for _, each := range client.ProduceSync(ctx, records...) {
		if each.Err != nil {
			return each.Err
		}
		fmt.Println("produced at", each.Record.Offset)
	}
	return nil
}

func franzConsume(
	ctx context.Context, bootstrap, topic string, from kgo.Offset, count int,
) error {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(bootstrap),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: from}}),
	)
	if err != nil {
		return err
	}
	defer client.Close()
	for read := 0; read < count; {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return err
		}
		fetches.EachRecord(func(record *kgo.Record) {
			read++
			if read <= count {
				headers := fmt.Sprint(record.Headers)
				show(record.Offset, record.Timestamp, record.Key, record.Value, headers)
			}
		})
	}
	return nil
}

func franzAdminister(ctx context.Context, admin *kadm.Client, topic string) error {
	ends, err := admin.ListEndOffsets(ctx, topic)
	if err != nil {
		return err
	}
	end, _ := ends.Lookup(topic, 0)
	fmt.Println("ends at", end.Offset, end.LeaderEpoch)
	if _, err := admin.UpdatePartitions(ctx, 3, topic); err != nil {
		return err
	}
	value := "123456"
	change := []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "max.message.bytes", Value: &value}}
	altered, err := admin.AlterTopicConfigs(ctx, change, topic)
	if err != nil {
		return err
	}
	fmt.Println("altered:", altered[0].Err)
	offsets := kadm.Offsets{}
	offsets.AddOffset(topic, 0, 3, -1)
	deleted, err := admin.DeleteRecords(ctx, offsets)
	if err != nil {
		return err
	}
	low, _ := deleted.Lookup(topic, 0)
	fmt.Println("begins at", low.LowWatermark, low.Err)
	_, err = admin.DeleteTopics(ctx, topic)
	return err
}
