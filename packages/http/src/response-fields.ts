import { exposedHeaders, formatHeaders, mergeExposed, mergeRetryAfter } from '@sluice/headers'
import { joinLists } from './foreign-fields.ts'
import { fieldLines, type HttpResponse, type ResponseField } from './http-response.ts'
import { type FieldKind, Ledger } from './ledger.ts'

/** The rate-limit fields that exist: who writes one of a kind answers for all of that kind. */
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

export interface FieldOptions {
  readonly rejected: boolean
  /** As `formatRetryAfter` answers it; only of a request that is refused. */
  readonly retryAfter: string | undefined
  readonly nowMs: number
  readonly exposeHeaders: boolean
  readonly githubExtras: boolean
}

/** The rate-limit fields of one response: what our guards have to tell, joined with what others have put there. */
export class ResponseFields {
  readonly ledger: Ledger = new Ledger()
  hideOnRedirect = false
  /** What we wrote last, and what others had written: between two guards of ours somebody may add to it. */
  readonly #written = new Map<string, string | undefined>()
  readonly #theirs = new Map<string, readonly string[]>()

  /** The fields as they are to be set now. */
  render(response: HttpResponse, options: FieldOptions): readonly ResponseField[] {
    const fields: ResponseField[] = []
    for (const [kind, dialect] of this.ledger.dialects) {
      const ours = new Map(
        formatHeaders(this.ledger.states(kind), {
          ...options,
          dialects: [dialect],
        }),
      )
      ours.delete('Retry-After')
      if (ours.size === 0) continue
      for (const name of fieldsOfKind[kind]) {
        const theirs = this.#others(response, name)
        const isList =
          dialect === 'draft-11' && (name === 'RateLimit' || name === 'RateLimit-Policy')
        const value = isList ? joinLists(name, theirs, ours.get(name)) : ours.get(name)
        if (value !== undefined || theirs.length > 0) fields.push([name, value])
      }
    }
    if (options.retryAfter !== undefined) {
      const merged = this.#others(response, 'Retry-After').reduce(
        (ours, theirs) => mergeRetryAfter(theirs, ours, options),
        options.retryAfter,
      )
      fields.push(['Retry-After', merged])
    }
    for (const [name, value] of fields) this.#written.set(name, value)
    return options.exposeHeaders && fields.length > 0
      ? [...fields, this.#exposed(response, options)]
      : fields
  }

  /** The fields that undo what was set, so that the response is as others left it. */
  undo(): readonly ResponseField[] {
    return [...this.#written.keys()].map((name) => {
      const theirs = this.#theirs.get(name) ?? []
      return [name, theirs.length === 0 ? undefined : theirs.join(', ')]
    })
  }

  #others(response: HttpResponse, name: string): readonly string[] {
    const added = fieldLines(response, name).filter((line) => line !== this.#written.get(name))
    const theirs = [...(this.#theirs.get(name) ?? []), ...added]
    this.#theirs.set(name, theirs)
    return theirs
  }

  #exposed(response: HttpResponse, { githubExtras }: FieldOptions): ResponseField {
    const dialects = [...this.ledger.dialects].map(([, dialect]) => dialect)
    const existing = fieldLines(response, 'Access-Control-Expose-Headers').join(', ')
    return [
      'Access-Control-Expose-Headers',
      mergeExposed(existing, exposedHeaders(dialects, { githubExtras })),
    ]
  }
}

const fieldsKey: unique symbol = Symbol('sluice.responseFields')

/** A request that knows the fields of its response, under a symbol that only this file has. */
interface Known {
  [fieldsKey]?: ResponseFields
}

/** The fields of the response to a request, which its guards have in common. */
export function responseFields(native: object): ResponseFields {
  const request: Known = native
  request[fieldsKey] ??= new ResponseFields()
  return request[fieldsKey]
}

/**
 * The fields to set as the head of a response goes out: none, or, on a redirect, those that take ours off again, where
 * a guard has `hideOnRedirect`.
 */
export function fieldsOnHead(native: object, status: number): readonly ResponseField[] {
  const { [fieldsKey]: fields }: Known = native
  const isRedirect = status >= 300 && status < 400 && status !== 304
  return isRedirect && fields?.hideOnRedirect ? fields.undo() : []
}
