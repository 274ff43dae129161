"""Llama-type models: Llama 3.x, SmolLM2, Qwen2/2.5, Qwen3, Mistral."""
