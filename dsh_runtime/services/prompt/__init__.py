"""The system prompt: sections that plugins contribute, in order, for whoever runs a model."""
