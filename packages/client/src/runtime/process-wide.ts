/**
 * State that exists once per process, although its ESM and CommonJS builds are two copies of each
 * module. Core has the same function, but the client does not depend on core.
 * @param name package, subject and version of its shape: older copies must be able to use it
 */
export function processWide<T extends object>(name: string, create: () => T): T {
  const key = Symbol.for(name)
  const known: T | undefined = Reflect.get(globalThis, key)
  if (known) return known
  const created = create()
  Object.defineProperty(globalThis, key, { value: created })
  return created
}
