"""The commands of kelr: each parses, makes one library call, and renders. Nothing imports them."""
