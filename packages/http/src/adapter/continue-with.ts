import { isPromise, type MaybePromise, show } from '@sluice/core'

/**
 * Calls `next` when a step says that the request goes on: at once, if nothing in it is async. What the step throws or
 * rejects with goes to `next` too, an object as it is. What is no object becomes an Error: frameworks take `next(undefined)`, or
 * `next('route')`, for leave to go on.
 */
export function continueWith(
  next: (error?: Error) => void,
  step: () => MaybePromise<boolean>,
): void {
  // Its type knows nothing but errors, and frameworks hand on any object.
  const fail = (thrown: unknown): void => Reflect.apply(next, undefined, [asObject(thrown)])
  let goesOn: MaybePromise<boolean>
  try {
    goesOn = step()
  } catch (error) {
    fail(error)
    return
  }
  if (isPromise(goesOn)) goesOn.then((yes) => yes && next(), fail)
  else if (goesOn) next()
}

function asObject(thrown: unknown): object {
  if (typeof thrown === 'object' && thrown !== null) return thrown
  return new Error(`a function of the options threw ${show(thrown)}, which is no Error`, {
    cause: thrown,
  })
}
