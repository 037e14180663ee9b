import type { MaybePromise } from '@sluice/core'

/** A response that is over. */
export interface EndedResponse {
  /** Its status code. */
  readonly status: number
}

/** Says something of a request when its response is over. */
export type ResponseCondition<Native> = (
  native: Native,
  response: EndedResponse,
) => MaybePromise<boolean>

/** Conditions on which the units of a decision are given back when the response is over. */
interface SettlementOptions<Native> {
  readonly chargeWhen?: ResponseCondition<Native> | undefined
  readonly refundWhen?: ResponseCondition<Native> | undefined
}

/** The condition on which a policy gives units back. */
export interface PolicySettlement<Native> {
  readonly option: keyof SettlementOptions<Native>
  readonly ask: ResponseCondition<Native>
  readonly refundsOn: boolean
}

export function settlementOf<Native>({
  chargeWhen,
  refundWhen,
}: SettlementOptions<Native>): PolicySettlement<Native> | undefined {
  if (chargeWhen) return { option: 'chargeWhen', ask: chargeWhen, refundsOn: false }
  if (refundWhen) return { option: 'refundWhen', ask: refundWhen, refundsOn: true }
  return undefined
}
