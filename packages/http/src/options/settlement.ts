import type { MaybePromise } from '@sluice/core'

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

/** Conditions under which the units of a decision are given back when the response ends. */
interface SettlementOptions<Native> {
  readonly chargeWhen?: ResponseCondition<Native> | undefined
  readonly refundWhen?: ResponseCondition<Native> | undefined
}

/** The condition under which a policy gives units back. */
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
