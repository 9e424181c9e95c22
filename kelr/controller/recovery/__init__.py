"""The Unclean Recovery Manager of KIP-966 around the state machine."""
