/**
 * State that exists once a process, although the ESM and the CommonJS build are two copies of each
 * module and one application may load both. A copy of the function in `@sluice/core`: the client
 * does not depend on core.
 * @param name the package, the thing and the version of its shape, as in
 * `@sluice/client/registries/1`. Raise the version when a copy that is older could not use the
 * value
 */
export function processWide<T extends object>(name: string, create: () => T): T {
  const key = Symbol.for(name)
  const known: T | undefined = Reflect.get(globalThis, key)
  if (known) return known
  const created = create()
  Object.defineProperty(globalThis, key, { value: created })
  return created
}
