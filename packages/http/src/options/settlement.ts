import { type MaybePromise, SluiceError } from '@sluice/core'

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
export interface SettlementOptions<Native> {
  /**
   * Gives the units of a request back unless this is true of its response: `(req, { status }) =>
   * status === 401` counts failed logins. A client that leaves before the end is charged. @default
   * every response counts
   */
  chargeWhen?: ResponseCondition<Native> | undefined
  /**
   * Gives the units of a request back when this is true of its response: `(req, { status }) =>
   * status >= 500`. @default never
   */
  refundWhen?: ResponseCondition<Native> | undefined
}

/** The condition on which a policy gives units back. */
export interface PolicySettlement<Native> {
  /** The user's name for it, for messages. */
  readonly option: 'chargeWhen' | 'refundWhen'
  readonly ask: ResponseCondition<Native>
  /** The answer upon which the charge is given back. */
  readonly refundsOn: boolean
}

export const settlementFields = ['chargeWhen', 'refundWhen'] as const

/** @throws SluiceError when both are given */
export function checkSettlement<Native>(
  options: SettlementOptions<Native>,
  at: (field: string) => string,
): void {
  if (options.chargeWhen === undefined || options.refundWhen === undefined) return
  throw new SluiceError(
    'SLUICE_OPTION_INVALID',
    `${at('chargeWhen')} and ${at('refundWhen')} cannot stand together, since they may contradict each other: say all in one`,
  )
}

export function settlementOf<Native>({
  chargeWhen,
  refundWhen,
}: SettlementOptions<Native>): PolicySettlement<Native> | undefined {
  if (chargeWhen) return { option: 'chargeWhen', ask: chargeWhen, refundsOn: false }
  if (refundWhen) return { option: 'refundWhen', ask: refundWhen, refundsOn: true }
  return undefined
}
