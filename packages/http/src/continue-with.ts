import { isPromise, type MaybePromise, show } from '@sluice/core'

/**
 * Calls `next` when a step says that the request goes on: at once, if nothing in it is async. What the step throws or
 * rejects with goes to `next` too, and is always an object: frameworks take `next(undefined)`, or `next('route')`, for
 * leave to go on.
 */
export function continueWith(
  next: (error?: Error) => void,
  step: () => MaybePromise<boolean>,
): void {
  const fail = (thrown: unknown): void => next(asError(thrown))
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

function asError(thrown: unknown): Error {
  if (thrown instanceof Error) return thrown
  const what = typeof thrown === 'object' && thrown !== null ? 'an object' : show(thrown)
  const error = new Error(`a function of the options threw ${what}, which is no Error`, {
    cause: thrown,
  })
  return typeof thrown === 'object' && thrown !== null ? Object.assign(error, thrown) : error
}
