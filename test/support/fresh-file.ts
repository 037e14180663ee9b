/** Files share a process: each of them begins as if nobody had been warned yet. */
for (const name of ['@sluice/core/warned/1', '@sluice/client/thrown/1']) {
  const told: unknown = Reflect.get(globalThis, Symbol.for(name))
  if (told instanceof Set) told.clear()
}
