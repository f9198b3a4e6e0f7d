"""Bring Apache Hudi tables to a declared state: plan, review, apply."""
