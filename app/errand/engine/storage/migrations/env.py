"""Run by Alembic: runs the migrations in the transaction of the connection from `schema.migrate`."""

from alembic import context

from errand.engine.storage.sql.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, render_as_batch=True)
with context.begin_transaction():
    context.run_migrations()
