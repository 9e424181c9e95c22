"""The live screen of ``kelr watch``: pure text and keys, and the one module that touches the terminal."""
