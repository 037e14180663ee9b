import { SluiceError } from '@sluice/core'
import type { RefusalReason } from './outbound-event.ts'

/** Why a call was not made. */
export class CallNotMade extends Error {
  readonly reason: RefusalReason

  constructor(reason: RefusalReason) {
    super(reason)
    this.reason = reason
  }
}

const reasons: { readonly [reason in RefusalReason]: string } = {
  full: 'as many calls wait as may (maxQueue)',
  timeout: 'the call waited as long as it may (maxWait)',
  aborted: 'its signal was aborted',
  closed: 'the outbound was closed',
}

export function callRefused(name: string, reason: RefusalReason): SluiceError {
  return new SluiceError(
    'SLUICE_OUTBOUND_REFUSED',
    `no call was made to '${name}': ${reasons[reason]}`,
  )
}
