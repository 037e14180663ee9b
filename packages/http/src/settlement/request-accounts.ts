import type { Hold } from '../passage.ts'
import { type AccountPlace, type Decided, RequestAccount } from './request-account.ts'
import { ChargeableDecision } from './request-decision.ts'

/** The account of a request, as far as it is open. */
export interface Opened {
  readonly decision: ChargeableDecision
  /** What is to be settled when the response is over, charged or not. */
  readonly hold: Hold | undefined
}

/** Opens the accounts of a guard's requests: at once where something may have to be given back, else with the first late charge. */
export class RequestAccounts<Native extends object> {
  readonly #place: AccountPlace<Native>
  readonly #refunds: boolean

  constructor(place: AccountPlace<Native>) {
    this.#place = place
    this.#refunds = place.rules.some(({ settlement }) => settlement !== undefined)
  }

  open(request: Decided<Native>): Opened {
    if (!this.#mayRefund(request)) {
      const openLater = () => new RequestAccount(this.#place, request)
      return { decision: new ChargeableDecision(request.decision, openLater), hold: undefined }
    }
    const account = new RequestAccount(this.#place, request)
    const decision = new ChargeableDecision(request.decision, () => account)
    return { decision, hold: account.held() }
  }

  #mayRefund({ decision: { allowed, source }, checks }: Decided<Native>): boolean {
    if (!this.#refunds || !allowed || source === 'open') return false
    return checks.some(({ rule }) => rule.settlement !== undefined)
  }
}
