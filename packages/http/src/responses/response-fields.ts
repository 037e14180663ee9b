import type { Decision } from '@sluice/core'
import {
  exposedHeaders,
  formatFields,
  formatRetryAfter,
  formats,
  mergeExposed,
  mergeRetryAfter,
  rateLimitFields,
} from '@sluice/headers'
import type { RequestContext } from '../request/context.ts'
import { fieldLines, type HttpResponse, type ResponseField } from '../request/exchange.ts'
import { PolicyStates } from './policy-states.ts'

export interface RenderOptions {
  readonly rejected: boolean
  /** The result of `formatRetryAfter`; only for a refused request. */
  readonly retryAfter: string | undefined
  readonly nowMs: number
  readonly exposeHeaders: boolean
}

/** The rate-limit fields of one response: ours, merged with those set by other code. */
export class ResponseFields {
  readonly policies: PolicyStates = new PolicyStates()
  hideOnRedirect = false
  /** Our lines, newest first, and lines from other code, which may run between two guards. */
  #written: readonly ResponseField[] = none
  #theirs: Map<string, readonly string[]> | undefined
  #options: RenderOptions | undefined

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
      ? [...fields, this.#exposed(response)]
      : fields
  }

  renderOn(response: HttpResponse): readonly ResponseField[] {
    return this.#options ? this.render(response, this.#options) : []
  }

  /** Returns fields that undo ours, so that the response is as other code left it. */
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

  /** Returns whether other code has written one of our fields, which is rare. */
  #hasOthers(response: HttpResponse): boolean {
    if (this.#theirs) return true
    for (const lowerCase of response.getHeaderNames()) {
      const field = rateLimitFields.get(lowerCase)
      if (!field || !this.policies.speaks(field.family)) continue
      if (response.getHeader(lowerCase) !== this.#lastWritten(field.name)) return true
    }
    return false
  }

  #joined(response: HttpResponse, options: RenderOptions): ResponseField[] {
    const fields: ResponseField[] = []
    for (const dialect of this.policies.dialects) {
      const { family, fieldNames, join } = formats[dialect]
      const ours = new Map(formatFields(this.policies.states(family), [dialect], options))
      if (ours.size === 0) continue
      // A limiter that writes one field of a family is responsible for all fields of the family.
      for (const { name, family: other } of rateLimitFields.values()) {
        if (other !== family) continue
        const theirs = this.#others(response, name)
        const isJoined = join && fieldNames.includes(name)
        const value = isJoined ? join(name, theirs, ours.get(name)) : ours.get(name)
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

  #exposed(response: HttpResponse): ResponseField {
    const existing = fieldLines(response, 'Access-Control-Expose-Headers').join(', ')
    return [
      'Access-Control-Expose-Headers',
      mergeExposed(existing, exposedHeaders(this.policies.dialects)),
    ]
  }
}

const none: readonly never[] = []

/** The symbol under which a decision, or a request, keeps the fields of its response. */
export const fieldsKey: unique symbol = Symbol.for('@sluice/http/response-fields/2')

interface Carrier {
  [fieldsKey]?: ResponseFields | undefined
}

/**
 * Returns the response fields of a request, shared by its guards. They are kept on the decision
 * that the application sees. They are not kept on the request, because each Express request has its
 * own hidden class, and one more property would cost microseconds. If an adapter exposes no
 * decisions, the request keeps them.
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

/** Returns the fields to set on a response created after the decisions. */
export function fieldsOn(
  shown: object | undefined,
  response: HttpResponse,
): readonly ResponseField[] {
  return fieldsOf(shown)?.renderOn(response) ?? []
}

/** Returns the fields to set with the head: none, unless `hideOnRedirect` removes some. */
export function fieldsOnHead(shown: object | undefined, status: number): readonly ResponseField[] {
  const fields = fieldsOf(shown)
  const isRedirect = status >= 300 && status < 400 && status !== 304
  return isRedirect && fields?.hideOnRedirect ? fields.undo() : []
}

/** Jitter only adds: a client that waits longer than necessary is admitted. */
export function retryAfter({ retryAfterMs }: Decision, retryJitter: number): string | undefined {
  const jitterMs = retryJitter > 0 ? Math.random() * retryJitter * retryAfterMs : 0
  return formatRetryAfter(retryAfterMs, jitterMs)
}
