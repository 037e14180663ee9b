import type { Decision } from '@sluice/core'
import {
  exposedHeaders,
  formatFields,
  formatRetryAfter,
  mergeExposed,
  mergeRetryAfter,
  parseRateLimit,
  parseRateLimitPolicy,
} from '@sluice/headers'
import type { RequestContext } from '../request/context.ts'
import { fieldLines, type HttpResponse, type ResponseField } from '../request/response.ts'
import { type FieldKind, kindOf, PolicyStates } from './policy-states.ts'

export interface RenderOptions {
  readonly rejected: boolean
  /** As `formatRetryAfter` answers it; only of a request that is refused. */
  readonly retryAfter: string | undefined
  readonly nowMs: number
  readonly exposeHeaders: boolean
  readonly githubExtras: boolean
}

/**
 * The rate-limit fields of one response: those of our guards, joined with those that others have
 * set.
 */
export class ResponseFields {
  readonly policies: PolicyStates = new PolicyStates()
  hideOnRedirect = false
  /**
   * The lines that we wrote, the newest first, and the lines of others: other code may add lines
   * between two of our guards.
   */
  #written: readonly ResponseField[] = none
  #theirs: Map<string, readonly string[]> | undefined
  #options: RenderOptions | undefined

  /** The fields as they are to be set now. */
  render(response: HttpResponse, options: RenderOptions): readonly ResponseField[] {
    this.#options = options
    const fields = this.#limits(response, options)
    if (options.retryAfter !== undefined) {
      const merged = this.#others(response, 'Retry-After').reduce(
        (ours, theirs) => mergeRetryAfter(theirs, ours, options),
        options.retryAfter,
      )
      fields.push(['Retry-After', merged])
    }
    this.#written = this.#written.length === 0 ? fields : [...fields, ...this.#written]
    return options.exposeHeaders && fields.length > 0
      ? [...fields, this.#exposed(response, options)]
      : fields
  }

  /** The fields as they are to be set on a response that was made after the decisions. */
  renderOn(response: HttpResponse): readonly ResponseField[] {
    return this.#options ? this.render(response, this.#options) : []
  }

  /** The fields that undo what was set, so that the response is as others left it. */
  undo(): readonly ResponseField[] {
    return this.#written.map(([name]) => {
      const theirs = this.#theirs?.get(name) ?? []
      return [name, theirs.length === 0 ? undefined : theirs.join(', ')]
    })
  }

  #limits(response: HttpResponse, options: RenderOptions): ResponseField[] {
    const { dialects, uniformStates } = this.policies
    if (!uniformStates || this.#hasOthers(response)) return this.#joined(response, options)
    return formatFields(uniformStates, dialects, options)
  }

  /** Tells whether other code has written a field of ours, which nearly never happens. */
  #hasOthers(response: HttpResponse): boolean {
    if (this.#theirs) return true
    for (const lowerCase of response.getHeaderNames()) {
      const field = limitField(lowerCase)
      if (!field || !this.policies.speaks(field.kind)) continue
      if (response.getHeader(lowerCase) !== this.#lastWritten(field.name)) return true
    }
    return false
  }

  #joined(response: HttpResponse, options: RenderOptions): ResponseField[] {
    const fields: ResponseField[] = []
    for (const dialect of this.policies.dialects) {
      const kind = kindOf(dialect)
      const states = this.policies.states(kind)
      const ours = new Map(formatFields(states, [dialect], options))
      if (ours.size === 0) continue
      for (const name of fieldsOfKind[kind]) {
        const theirs = this.#others(response, name)
        const isList =
          dialect === 'draft-11' && (name === 'RateLimit' || name === 'RateLimit-Policy')
        const value = isList ? joinLists(name, theirs, ours.get(name)) : ours.get(name)
        if (value !== undefined || theirs.length > 0) fields.push([name, value])
      }
    }
    return fields
  }

  #others(response: HttpResponse, name: string): readonly string[] {
    const written = this.#lastWritten(name)
    const added = fieldLines(response, name).filter((line) => line !== written)
    const known = this.#theirs?.get(name) ?? []
    if (added.length === 0) return known
    this.#theirs ??= new Map()
    this.#theirs.set(name, [...known, ...added])
    return [...known, ...added]
  }

  #lastWritten(name: string): string | undefined {
    for (const [other, value] of this.#written) if (other === name) return value
    return undefined
  }

  #exposed(response: HttpResponse, { githubExtras }: RenderOptions): ResponseField {
    const existing = fieldLines(response, 'Access-Control-Expose-Headers').join(', ')
    return [
      'Access-Control-Expose-Headers',
      mergeExposed(existing, exposedHeaders(this.policies.dialects, { githubExtras })),
    ]
  }
}

const none: readonly never[] = []

/** Under this symbol a decision, or a request, carries the fields of its response. */
export const fieldsKey: unique symbol = Symbol.for('@sluice/http/response-fields/2')

interface Carrier {
  [fieldsKey]?: ResponseFields | undefined
}

/**
 * The fields of the response to a request, which its guards have in common. The decision that the
 * application sees carries them. The request does not, because each request of Express has a hidden
 * class of its own, and one more property would cost microseconds. If an adapter shows no
 * decisions, the request carries them.
 */
export function responseFields(context: RequestContext<object>): ResponseFields {
  if ('shown' in context) return fieldsOf(context.shown) ?? new ResponseFields()
  const known = fieldsOf(context.native)
  if (known) return known
  const carrier: Carrier = context.native
  carrier[fieldsKey] = new ResponseFields()
  return carrier[fieldsKey]
}

function fieldsOf(known: object | undefined): ResponseFields | undefined {
  const carrier: Carrier | undefined = known
  return carrier?.[fieldsKey]
}

/** The fields to set on a response that was made after the decisions on its request. */
export function fieldsOn(
  shown: object | undefined,
  response: HttpResponse,
): readonly ResponseField[] {
  return fieldsOf(shown)?.renderOn(response) ?? []
}

/**
 * The fields to set when the head of a response is sent. There are none, except on a redirect with
 * `hideOnRedirect`: then they remove ours.
 */
export function fieldsOnHead(shown: object | undefined, status: number): readonly ResponseField[] {
  const fields = fieldsOf(shown)
  const isRedirect = status >= 300 && status < 400 && status !== 304
  return isRedirect && fields?.hideOnRedirect ? fields.undo() : []
}

/**
 * The rate-limit fields that exist. A limiter that writes one field of a kind is responsible for
 * all fields of that kind.
 */
const fieldsOfKind: Readonly<Record<FieldKind, readonly string[]>> = {
  ietf: [
    'RateLimit-Policy',
    'RateLimit',
    'RateLimit-Limit',
    'RateLimit-Remaining',
    'RateLimit-Reset',
  ],
  legacy: [
    'X-RateLimit-Limit',
    'X-RateLimit-Remaining',
    'X-RateLimit-Reset',
    'X-RateLimit-Used',
    'X-RateLimit-Resource',
  ],
}

interface LimitField {
  readonly name: string
  readonly kind: FieldKind
}

const byLowerCase = new Map<string, LimitField>()
for (const kind of ['ietf', 'legacy'] as const) {
  for (const name of fieldsOfKind[kind]) byLowerCase.set(name.toLowerCase(), { name, kind })
}

/** The rate-limit field of a name in lower case; `undefined` for all others. */
function limitField(lowerCase: string): LimitField | undefined {
  return byLowerCase.get(lowerCase)
}

const member = /(?:"(?:\\.|[^"\\])*"|[^",])+/g

/**
 * Joins a list of ours with one that another limiter, or a proxy, has put on the response: theirs
 * comes first. Items of another type than in the drafts since -08, and items with a name of our
 * list, are dropped, since no client could read them.
 */
function joinLists(
  name: 'RateLimit' | 'RateLimit-Policy',
  theirs: readonly string[],
  ours: string | undefined,
): string | undefined {
  if (theirs.length === 0) return ours
  const parse = name === 'RateLimit' ? parseRateLimit : parseRateLimitPolicy
  const taken = new Set(ours === undefined ? [] : parse(ours).map((item) => item.name))
  const members = (theirs.join(',').match(member) ?? []).flatMap((text) => {
    const [item] = parse(text)
    if (item?.name === undefined || taken.has(item.name)) return []
    taken.add(item.name)
    return [text.trim()]
  })
  if (ours !== undefined) members.push(ours)
  return members.length === 0 ? undefined : members.join(', ')
}

/** Jitter only adds: a client that waits longer than needed is admitted. */
export function retryAfter({ retryAfterMs }: Decision, retryJitter: number): string | undefined {
  const jitterMs = retryJitter > 0 ? Math.random() * retryJitter * retryAfterMs : 0
  return formatRetryAfter(retryAfterMs, jitterMs)
}
