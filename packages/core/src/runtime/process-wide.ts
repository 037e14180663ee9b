/**
 * State that exists once per process, although the ESM and CommonJS builds are two copies of each
 * module and one application may load both.
 * @param name the package, the subject and the version of its shape, as in
 * `@sluice/core/accesses/1`. Raise the version if an older copy could not use the value
 */
export function processWide<T extends object>(name: string, create: () => T): T {
  const key = Symbol.for(name)
  const known: T | undefined = Reflect.get(globalThis, key)
  if (known) return known
  const created = create()
  Object.defineProperty(globalThis, key, { value: created })
  return created
}
