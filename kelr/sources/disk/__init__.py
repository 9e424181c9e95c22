"""Reading a broker's log directories without Kafka; nothing is ever written there."""
