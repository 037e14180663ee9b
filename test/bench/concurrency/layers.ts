/** Who ran, as a CPU profile names it. */
export interface Frame {
  readonly functionName: string
  readonly url: string
}

interface Layer {
  readonly name: string
  /** Part of the file's path, after `packages/`, `node_modules/` or `node:`. */
  readonly files: RegExp
}

/**
 * The first that fits counts. What is in no layer stands under the name of its file, so that what is written later is seen, and can be
 * given a layer here.
 */
const layers: readonly Layer[] = [
  { name: 'key and digest', files: /redis\/src\/(key-|keys|tags|shards)|lru-cache|node:.*crypto/ },
  { name: 'queue', files: /redis\/src\/(call-queue|split-calls|promised-ask|lanes|moving-slots)/ },
  { name: 'decoding', files: /redis\/src\/reply/ },
  { name: 'encoding', files: /redis\/src\/(call|general-call|plans|usual-states|row|script)/ },
  { name: 'outcome', files: /redis\/src\/outcomes|core\/src\/(algorithms\/|check|decision)/ },
  { name: 'denials', files: /redis\/src\/(denials|strikes)|core\/src\/(denials|strikes)/ },
  { name: 'store', files: /redis\/src\/(redis-store|fleet)/ },
  { name: 'deadline', files: /core\/src\/resilience\/deadlines/ },
  { name: 'pending ask', files: /core\/src\/resilience\/pending-ask/ },
  { name: 'breaker and store access', files: /core\/src\/resilience\// },
  { name: 'limiter', files: /core\/src\/(limiter|enforcement|unlimited|maybe-promise|policy)/ },
  {
    name: 'client',
    files:
      /redis\/src\/clients\/|ioredis|redis-parser|redis-errors|standard-as-callback|denque|debug\/|cluster-key-slot|@redis\/|node:(internal\/)?(net|stream|streams|buffer|events|util|errors|stream_base_commons|timers|async_hooks|fixed_queue|string_decoder)/,
  },
  { name: 'microtasks, ticks', files: /node:internal\/process\/(task_queues|promises)/ },
  { name: 'the benchmark itself', files: /bench\/|node:(internal\/)?(perf|perf_hooks)/ },
  { name: 'Node itself', files: /^node:/ },
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
  const layer = layers.find(({ files }) => files.test(name))
  return layer?.name ?? name
}
