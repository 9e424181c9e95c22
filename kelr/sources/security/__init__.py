"""Logins that take more than a name and a password: OAuth tokens, Kerberos, and key stores in Java's forms."""
