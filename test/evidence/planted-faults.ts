import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { build } from 'esbuild'
import { root } from '../support/workspace.ts'

type Row = readonly [find: string, replace: string]

/** Small faults in a source, and the way of deciding that shows them: a sequence of one algorithm, or a fleet. */
const of = (file: string, shownBy: string, ...rows: readonly Row[]) =>
  rows.map(([find, replace]) => ({ file, find, replace, shownBy }))

const log = 'core/src/algorithms/sliding-log.ts'
const window = 'core/src/algorithms/fixed-window.ts'
const lua = 'redis/src/scripts/generated/lua.ts'

export const plantedFaults = [
  ...of(
    ...([log, 'sliding-log'] as const),
    ['const cutMs = now - check.policy.windowMs', 'const cutMs = now - check.policy.windowMs + 1'],
    ['const cutMs = now - check.policy.windowMs', 'const cutMs = now - check.policy.windowMs - 1'],
    ['timeAt(state, low) + check.policy', 'timeAt(state, low) - 1 + check.policy'],
    ['timeAt(state, low) + check.policy', 'timeAt(state, low) + 1 + check.policy'],
    ['state.lastTotal += units', 'state.lastTotal += 1'],
    ['used > check.limit) return', 'used > check.limit + 1) return'],
    ['state.base = totalAt(state, index - 1)', 'state.base = 0'],
    ['const gone = state.lastTotal - target', 'const gone = state.lastTotal'],
    ['state.lastTotal -= units', 'state.lastTotal -= 2 * units'],
  ),
  ...of(
    ...([window, 'fixed-window'] as const),
    ['now < endOf(check, state.startMs)', 'now < endOf(check, state.startMs) - 100'],
    [': endOf(check, state.startMs) - now', ': check.policy.windowMs'],
    ['state.count) + cost', 'state.count)'],
  ),
  ...of(
    ...(['core/src/algorithms/bucket.ts', 'token-bucket'] as const),
    ['check, now) + check.cost * windowMs', 'check, now) + windowMs'],
    ['level - given })', 'level - 3 * given })'],
  ),
  ...of(
    ...(['core/src/engine/engine.ts', 'sliding-log'] as const),
    ['wait === 0 ? taken(states, found) : denied', 'wait >= 0 ? taken(states, found) : denied'],
    ['waits.some((wait) => wait > 0)', 'waits.every((wait) => wait > 0)'],
  ),
  ...of(
    ...(['core/src/engine/outcome.ts', 'sliding-log'] as const),
    ['(limit, most, used)', '(limit, most, used - 1)'],
    ['check.cost > 0 && check.limit', 'check.cost > 1 && check.limit'],
    ['this.retryAfterMs = waitMs', 'this.retryAfterMs = 2 * waitMs'],
  ),
  ...of(...(['core/src/algorithms/window.ts', 'sliding-log'] as const), [
    'Math.max(0, capacity - used)',
    'Math.max(0, capacity - used + 1)',
  ]),
  // The clock of the store.
  ...of(
    ...(['core/src/memory-store/memory-store.ts', 'sliding-log'] as const),
    ['(states, checks, Date.now())', '(states, checks, 2 * Date.now())'],
    ['(states, checks, Date.now())', '(states, checks, Date.now() - (Date.now() % 50))'],
  ),
  // The ledger.
  ...of(
    ...(['core/src/ledger/uncounted-units.ts', 'async'] as const),
    ['this.uncounted + cost > policy.maxUncounted', 'cost > policy.maxUncounted'],
    ['this.uncounted += check.cost', 'this.uncounted += 0'],
  ),
  ...of('core/src/ledger/fallback.ts', 'outage', [
    'limit: shareOf(check.limit, instances)',
    'limit: 2 * check.limit',
  ]),
  ...of('core/src/regions/shares.ts', 'regions', ['let left = limit', 'let left = 2 * limit']),
  // The scripts of Redis.
  ...of(
    ...([lua, 'sliding-log on Redis'] as const),
    ['= count - head + units', '= count - head'],
    ['cell.used + cost - policy.limit', 'cell.used - policy.limit'],
    ['policy.window - now', 'policy.window - now - 1'],
    ['dead_until = now - policy.window', 'dead_until = now - policy.window - 50'],
  ),
  ...of(lua, 'fixed-window on Redis', ['count + units > limit', 'count > limit']),
]

/** Bundles a package with a fault in it. Returns the path of the bundle. */
export async function plant({ file, find, replace }: (typeof plantedFaults)[number]) {
  const path = join(root, 'packages', file)
  const outfile = join(root, 'test/node_modules/.cache/sluice', `${randomUUID()}.mjs`)
  const source = await readFile(path, 'utf8')
  const faulty = source.replaceAll(find, () => replace)
  if (faulty === source) throw new Error(`${file} has no '${find}': plant the fault elsewhere`)
  const name = `@sluice/${file.slice(0, file.indexOf('/'))}`
  await build({
    stdin: { contents: `export * from '${name}'`, resolveDir: join(root, 'test') },
    ...{ outfile, bundle: true, format: 'esm', platform: 'node', logLevel: 'error' },
    conditions: ['@sluice/source'],
    plugins: [
      {
        name: 'fault',
        setup: ({ onLoad }) =>
          onLoad({ filter: /\.ts$/ }, ({ path: loaded }) =>
            loaded === path ? { contents: faulty, loader: 'ts' } : undefined,
          ),
      },
    ],
  })
  return outfile
}
