/** A value, or a promise of it: a synchronous store costs no promise. */
export type MaybePromise<T> = T | Promise<T>

/** Returns whether a value is a promise. Cloudflare's promises of remote calls are functions. */
export function isPromise<T>(value: MaybePromise<T>): value is Promise<T> {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return false
  // A property read, since the operator `in` is several times slower for values of many shapes.
  const { then }: { readonly then?: unknown } = value
  return then !== undefined
}

/** Continues with a value: at once if it is there, otherwise when it arrives. */
export function andThen<T, U>(
  value: MaybePromise<T>,
  next: (value: T) => MaybePromise<U>,
): MaybePromise<U> {
  return isPromise(value) ? value.then(next) : next(value)
}

/** Joins values: at once if all are there, as a memory store's are, otherwise when all arrive. */
export function together<T>(values: readonly MaybePromise<T>[]): MaybePromise<readonly T[]> {
  return values.every((value): value is T => !isPromise(value)) ? values : Promise.all(values)
}

/**
 * Returns the result of a function as a promise. An async function would wrap the function's own
 * promise in another, and a closure would be one more object.
 */
export function promised<T, Args extends readonly unknown[]>(
  work: (...args: Args) => MaybePromise<T>,
  ...args: Args
): Promise<T> {
  try {
    const value = work(...args)
    return isPromise(value) ? value : Promise.resolve(value)
  } catch (error) {
    return Promise.reject(error)
  }
}
