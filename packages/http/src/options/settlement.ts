import type { MaybePromise, Optional } from '@sluice/core'

/** A finished response. */
export interface EndedResponse {
  /** Its status code. */
  readonly status: number
}

/** A function of a request and its finished response. */
export type ResponseCondition<Native> = (
  native: Native,
  response: EndedResponse,
) => MaybePromise<boolean>

/** The condition under which a policy gives units back. */
export interface PolicySettlement<Native> {
  readonly option: 'chargeWhen' | 'refundWhen'
  readonly ask: ResponseCondition<Native>
  readonly refundsOn: boolean
}

export function settlementOf<Native>(
  when: Optional<Record<'chargeWhen' | 'refundWhen', ResponseCondition<Native>>>,
): PolicySettlement<Native> | undefined {
  if (when.chargeWhen) return { option: 'chargeWhen', ask: when.chargeWhen, refundsOn: false }
  if (when.refundWhen) return { option: 'refundWhen', ask: when.refundWhen, refundsOn: true }
  return undefined
}
