import { afterAll } from 'vitest'

/** Files share a process: each of them begins as if nobody had been warned yet. */
for (const name of ['@sluice/core/warned/1', '@sluice/client/thrown/1']) {
  const told: unknown = Reflect.get(globalThis, Symbol.for(name))
  if (told instanceof Set) told.clear()
}

/** The things that a test may replace. They are given back behind its file, or the files after it would meet the fake. */
const shared = [
  ...['Date', 'setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'setImmediate']
    .concat(['queueMicrotask', 'fetch', 'performance', 'console', 'crypto'])
    .map((name) => ({ owner: globalThis, name })),
  { owner: Date, name: 'now' },
  { owner: Math, name: 'random' },
  { owner: performance, name: 'now' },
  ...['log', 'warn', 'error'].map((name) => ({ owner: console, name })),
  ...['emitWarning', 'exit', 'nextTick', 'hrtime'].map((name) => ({ owner: process, name })),
].map(({ owner, name }) => ({ owner, name, original: Reflect.get(owner, name) }))
const environment = { ...process.env }

/**
 * Background work of stores and brokers that a file does not close, such as heartbeats: each would go on by the faked clocks of the files
 * after it, thousands of times within a test.
 */
const background = new Set<NodeJS.Timeout>()
const wait = setTimeout
const timers: NodeJS.Timeout = Object.getPrototypeOf(wait(() => undefined, 0))
const { unref } = timers
timers.unref = function (this: NodeJS.Timeout) {
  if (/\/packages\/[a-z]+\/src\//.test(new Error('unref').stack ?? '')) background.add(this)
  return unref.call(this)
}

afterAll(async () => {
  // A heartbeat that is under way starts the next timer once it is answered.
  await new Promise((resolve) => wait(resolve, 20))
  timers.unref = unref
  for (const timer of background) clearTimeout(timer)
  for (const { owner, name, original } of shared) {
    if (Reflect.get(owner, name) !== original) Reflect.set(owner, name, original)
  }
  for (const name of new Set([...Object.keys(environment), ...Object.keys(process.env)])) {
    const original = environment[name]
    if (original === undefined) delete process.env[name]
    else process.env[name] = original
  }
})
