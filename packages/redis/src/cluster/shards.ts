import { algorithmOf, leavesTrace, unknownOutcome } from '@sluice/core/backend'
import {
  PromisedRequest,
  type QueuedCheck,
  type QueuedOutcome,
  type QueuedRequest,
} from '../model/queued-request.ts'

interface Item {
  readonly check: QueuedCheck
  readonly key: string
  /** Among all checks of the request. */
  readonly place: number
}

type Part = readonly Item[]

/**
 * Applies a request whose keys are in several shards, which no single script can access. `consume`
 * asks one shard after another, the smallest limit first, since it is the likeliest to deny. If a
 * shard denies or fails, the units already taken are given back. So no limit is ever exceeded, but
 * in the meantime other requests may be denied because of those units. Every other operation goes
 * to all shards at once.
 */
export async function applyByShard(
  whole: QueuedRequest,
  shardOf: (key: string) => string,
  submit: (part: QueuedRequest) => void,
): Promise<readonly QueuedOutcome[]> {
  const parts = partsOf(whole, shardOf)
  const outcomes: QueuedOutcome[] = whole.checks.map(unknownOutcome)

  async function ask(op: QueuedRequest['op'], part: Part): Promise<readonly QueuedOutcome[]> {
    const checks = part.map(({ check }) => check)
    // Operations that settle the request must run even if no caller waits for them.
    const cancellation = op === whole.op ? whole : undefined
    const keys = part.map(({ key }) => key)
    const promised = new PromisedRequest({ op, checks, keys }, cancellation)
    submit(promised)
    const answers = await promised.outcomes
    // Having nothing to give back says nothing about the request.
    record(part, op === whole.op ? answers : answers.map((one) => ({ ...one, allowed: true })))
    return answers
  }

  function record(part: Part, answers: readonly QueuedOutcome[]): void {
    for (const [index, { check, place }] of part.entries()) {
      outcomes[place] = answers[index] ?? unknownOutcome(check)
    }
  }

  /** If this fails, units stay taken until they leave the window, or a denial is not counted. */
  function settle(op: 'refund' | 'charge', some: readonly Part[]): Promise<unknown> {
    const asked = some.filter(({ length }) => length > 0)
    return Promise.all(asked.map((part) => ask(op, part).catch(() => record(part, []))))
  }

  /** With the receipts for the units taken. */
  function taken(part: Part): Part {
    return part.flatMap((item) => {
      const receipt = outcomes[item.place]?.receipt
      return receipt ? [{ ...item, check: { ...item.check, receipt } }] : []
    })
  }

  async function consumeInTurn(): Promise<void> {
    parts.sort((a, b) => smallestLimit(a) - smallestLimit(b))
    for (const [index, part] of parts.entries()) {
      const asked = parts.slice(0, index)
      try {
        const answers = await ask('consume', part)
        if (answers.every(({ allowed }) => allowed)) continue
      } catch (error) {
        await settle('refund', asked.map(taken))
        throw error
      }
      // Policies that count denials keep their units, and are charged where they were not reached.
      const uncharged = parts.slice(index + 1).map((one) => one.filter(countsDenials))
      await Promise.all([
        settle(
          'refund',
          asked.map((one) => taken(one).filter((item) => !countsDenials(item))),
        ),
        settle('charge', [...uncharged, ...asked.map((one) => one.filter(takesStrikes))]),
      ])
      return
    }
  }

  if (whole.op === 'consume') await consumeInTurn()
  else await Promise.all(parts.map((part) => ask(whole.op, part)))
  const isAllowed = outcomes.every(({ allowed }) => allowed)
  return isAllowed
    ? outcomes
    : outcomes.map((outcome) => ({ ...outcome, delayMs: 0, receipt: undefined }))
}

function partsOf({ checks, keys }: QueuedRequest, shardOf: (key: string) => string): Part[] {
  const parts = new Map<string, Item[]>()
  for (const [place, check] of checks.entries()) {
    const key = keys[place] ?? ''
    const shard = shardOf(key)
    const part = parts.get(shard) ?? []
    parts.set(shard, part)
    part.push({ check, key, place })
  }
  return [...parts.values()]
}

function smallestLimit(part: Part): number {
  return Math.min(...part.map(({ check }) => check.limit))
}

function countsDenials({ check }: Item): boolean {
  return check.policy.countDenied && leavesTrace(check)
}

/** A penalty takes nothing for a request that it allows, so it has not counted the denial. */
function takesStrikes(item: Item): boolean {
  return algorithmOf(item.check.policy).counts === 'strikes' && countsDenials(item)
}
