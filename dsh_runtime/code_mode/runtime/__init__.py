"""The subprocess runtime: each program in a fresh, confined interpreter."""
