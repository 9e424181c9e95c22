"""The live screen of ``kelr watch``: pure values and texts, and the one module that shows them, on Textual."""
