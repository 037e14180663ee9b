import { isPromise, type MaybePromise } from '@sluice/http'
import type { NextFunction } from 'express'

/** Calls `next` when `step` is done and says so, at once if it can, and with what it throws or rejects with: Express 4 awaits nothing. */
export function goOn(next: NextFunction, step: () => MaybePromise<boolean>): void {
  let goesOn: MaybePromise<boolean>
  try {
    goesOn = step()
  } catch (error) {
    next(error)
    return
  }
  if (isPromise(goesOn)) goesOn.then((yes) => yes && next(), next)
  else if (goesOn) next()
}
