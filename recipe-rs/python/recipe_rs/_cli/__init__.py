"""The command `recipe-rs`: one module per subcommand, and what they share."""
