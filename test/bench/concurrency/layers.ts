/** Who ran, as a CPU profile names it. */
export interface Frame {
  readonly functionName: string
  readonly url: string
}

interface Layer {
  readonly name: string
  /** Beginnings of paths after `packages/`. */
  readonly ours?: readonly string[]
  /** Part of the path of another file, after `node_modules/` or `node:`. */
  readonly others?: RegExp
}

/**
 * The first that fits counts. What is in no layer stands under the name of its file, so that what is written later is seen, and can be
 * given a layer here.
 */
export const layers: readonly Layer[] = [
  {
    name: 'key and digest',
    ours: ['redis/src/keys/', 'core/src/model/digest.ts'],
    others: /^node:.*crypto/,
  },
  {
    name: 'queue',
    ours: [
      'redis/src/calls/call-queue.ts',
      'redis/src/calls/split-calls.ts',
      'redis/src/calls/promised-ask.ts',
      'redis/src/cluster/',
    ],
  },
  {
    name: 'outcome',
    ours: [
      'redis/src/replies/outcomes.ts',
      'core/src/algorithms/',
      'core/src/engine/',
      'core/src/model/',
    ],
  },
  { name: 'decoding', ours: ['redis/src/replies/'] },
  { name: 'encoding', ours: ['redis/src/calls/', 'redis/src/scripts/'] },
  { name: 'denials', ours: ['core/src/resilience/denials', 'core/src/ledger/strikes.ts'] },
  { name: 'store', ours: ['redis/src/store/', 'redis/src/fleet/'] },
  { name: 'deadline', ours: ['core/src/resilience/deadlines.ts'] },
  { name: 'pending ask', ours: ['core/src/resilience/pending-ask.ts'] },
  { name: 'breaker and store access', ours: ['core/src/resilience/'] },
  { name: 'ledger', ours: ['core/src/ledger/', 'core/src/memory-store/'] },
  { name: 'deciders', ours: ['core/src/deciders/'] },
  { name: 'regions', ours: ['core/src/regions/'] },
  { name: 'observers', ours: ['core/src/observers/'] },
  {
    name: 'limiter',
    ours: [
      'core/src/limiter/',
      'core/src/policy/',
      'core/src/options/',
      'core/src/runtime/',
      'core/src/waiting/',
    ],
  },
  {
    name: 'client',
    ours: ['redis/src/clients/'],
    others:
      /ioredis|redis-parser|redis-errors|standard-as-callback|denque|debug\/|cluster-key-slot|@redis\/|node:(internal\/)?(net|stream|streams|buffer|events|util|errors|stream_base_commons|timers|async_hooks|fixed_queue|string_decoder)/,
  },
  { name: 'microtasks, ticks', others: /^node:internal\/process\/(task_queues|promises)/ },
  { name: 'the benchmark itself', others: /^test\/bench\/|^node:(internal\/)?(perf|perf_hooks)/ },
  { name: 'Node itself', others: /^node:/ },
]

/** What V8 counts under no file. */
const pseudo: Readonly<Record<string, string>> = {
  '(garbage collector)': 'garbage',
  '(program)': 'native code: sockets, V8',
}

/** The layer of a frame; `undefined` for a process that waits. */
export function layerOf({ functionName, url }: Frame): string | undefined {
  if (functionName === '(idle)' || functionName === '(root)') return undefined
  const special = pseudo[functionName]
  if (special !== undefined) return special
  if (url === '') return 'native code: sockets, V8'
  const file = /(?:packages\/|node_modules\/(?!.*node_modules\/)|(?=test\/bench\/))(.*)$/.exec(url)
  const name = file?.[1] ?? url
  const layer = layers.find(
    ({ ours, others }) => ours?.some((start) => name.startsWith(start)) || others?.test(name),
  )
  return layer?.name ?? name
}
