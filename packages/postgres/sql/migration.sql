-- Table and functions of postgresStore from @sluice/postgres. Can be run again at any time. Without
-- the word UNLOGGED, counts survive a crash of the server.

-- Processes that start at the same time run this one after another.
SELECT pg_advisory_xact_lock(hashtext('sluice_counts migration'));

CREATE UNLOGGED TABLE IF NOT EXISTS sluice_counts (
  key text COLLATE "C" PRIMARY KEY, -- 128 bits of a SHA-256, as base64url
  version bigint NOT NULL,          -- random, new on each write
  state text NOT NULL,              -- as encoded by core; empty: same as no row
  ends_at bigint NOT NULL           -- ms since 1970, whole minutes: most updates leave the index alone
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX IF NOT EXISTS sluice_counts_ends_at ON sluice_counts (ends_at);

-- Writes the states decided by a process, unless the rows have changed since it read them.
--   seen        version of each row known to the process; 0: no row
--   new_states  NULL for a row that does not change; NULL for all: nothing is written
--   decided_at  ms by this server's clock, as estimated by the process; NULL: it uses another clock
-- Returns '+' and the time (ms); or, if nothing was written, '-', the time and the rows.
CREATE OR REPLACE FUNCTION sluice_counts_decide(
  keys text[], seen bigint[], new_states text[], ends bigint[], new_version bigint, decided_at bigint
) RETURNS text LANGUAGE plpgsql
SET lock_timeout = '20ms' SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  same int := 0;
  inserted int;
  now_ms bigint;
BEGIN
  IF new_states IS NOT NULL THEN
    -- Keys are sorted, and rows are locked in that order, so calls cannot deadlock.
    UPDATE sluice_counts AS counts
      SET version = new_version, state = asked.state, ends_at = asked.ends
      FROM unnest(keys, seen, new_states, ends) AS asked (key, seen, state, ends)
      WHERE counts.key = asked.key AND counts.version = asked.seen AND asked.state IS NOT NULL;
    GET DIAGNOSTICS same = ROW_COUNT;
    IF 0 = ANY (seen) THEN
      INSERT INTO sluice_counts
        SELECT key, new_version, state, ends
        FROM unnest(keys, seen, new_states, ends) AS asked (key, seen, state, ends)
        WHERE seen = 0 AND state IS NOT NULL ORDER BY key
        ON CONFLICT DO NOTHING;
      GET DIAGNOSTICS inserted = ROW_COUNT;
      same := same + inserted;
    END IF;
  END IF;
  IF same < cardinality(keys) THEN
    -- The rows above are now locked. Check that the unchanged rows still have the same version.
    SELECT same + count(*) INTO same
      FROM unnest(keys, seen, new_states) AS asked (key, seen, state)
      LEFT JOIN sluice_counts USING (key)
      WHERE asked.state IS NULL AND coalesce(version, 0) = asked.seen;
  END IF;
  now_ms := floor(extract(epoch FROM clock_timestamp()) * 1000);
  IF same = cardinality(keys) AND coalesce(decided_at BETWEEN now_ms - 1000 AND now_ms, true) THEN
    RETURN '+' || now_ms;
  END IF;
  RAISE SQLSTATE 'SLUIC'; -- undoes the writes
EXCEPTION WHEN SQLSTATE 'SLUIC' THEN
  RETURN '-' || now_ms || coalesce((
    SELECT string_agg(E'\n' || key || ' ' || version || ' ' || state, '')
    FROM sluice_counts WHERE key = ANY (keys)), '');
END $$;

-- The same for one existing row: most calls of a quiet process.
CREATE OR REPLACE FUNCTION sluice_counts_decide_one(
  one_key text, seen bigint, new_state text, ends bigint, new_version bigint, decided_at bigint
) RETURNS text LANGUAGE plpgsql SET lock_timeout = '20ms' AS $$
DECLARE
  now_ms bigint := floor(extract(epoch FROM clock_timestamp()) * 1000);
BEGIN
  IF decided_at BETWEEN now_ms - 1000 AND now_ms THEN
    UPDATE sluice_counts SET version = new_version, state = new_state, ends_at = ends
      WHERE key = one_key AND version = seen;
    IF FOUND THEN RETURN '+' || now_ms; END IF;
  END IF;
  RETURN sluice_counts_decide(
    ARRAY[one_key], ARRAY[seen], ARRAY[new_state], ARRAY[ends], new_version, decided_at);
END $$;

-- Deletes up to `most` rows that ended before `before` (ms since 1970; default: a minute ago),
-- unless another process is doing so. Returns the number of rows.
CREATE OR REPLACE FUNCTION sluice_counts_sweep(most int, before bigint DEFAULT NULL)
RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  swept int;
BEGIN
  IF NOT pg_try_advisory_xact_lock(hashtext('sluice_counts')) THEN RETURN 0; END IF;
  DELETE FROM sluice_counts WHERE key IN (
    SELECT key FROM sluice_counts
    WHERE ends_at < coalesce(before, floor(extract(epoch FROM clock_timestamp()) * 1000) - 60000)
    LIMIT most FOR UPDATE SKIP LOCKED);
  GET DIAGNOSTICS swept = ROW_COUNT;
  RETURN swept;
END $$;
