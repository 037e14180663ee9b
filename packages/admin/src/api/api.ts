import { createHash } from 'node:crypto'
import { type TObject, type TSchema, TypeGuard } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { onOneLine } from '@sluice/core'
import { type HandlerRequest, type HandlerResponse, readBody } from '@sluice/http'
import { isNoteText } from '@sluice/policies'
import type { Granted } from '../access/authorize.ts'
import { ApiError } from '../stores/api-error.ts'
import type { Admin, Answering } from './context.ts'
import { type Endpoint, type EndpointName, endpoints } from './endpoints.ts'
import * as keyLimits from './key-limits.ts'
import * as keys from './keys.ts'
import * as live from './live.ts'
import { near } from './near.ts'
import * as overview from './overview.ts'
import * as policies from './policies.ts'
import * as queues from './queues.ts'
import { reason } from './schemas/parts.ts'

// biome-ignore lint/suspicious/noExplicitAny: queries and bodies are checked against their schemas
const answering: Readonly<Record<EndpointName, Answering<any, any>>> = {
  session: overview.session,
  live: live.live,
  traffic: live.traffic,
  fleet: overview.fleet,
  top: live.top,
  near,
  policies: policies.policies,
  change: policies.change,
  rollback: policies.rollback,
  kill: policies.kill,
  diff: policies.diff,
  export: policies.exported,
  lookup: keys.lookup,
  reset: keys.reset,
  block: keys.block,
  unblock: keys.unblock,
  temporaryLimit: keyLimits.temporaryLimit,
  unlock: keys.unlock,
  queues: queues.queues,
  deadLetters: queues.deadLetters,
  retryDead: queues.retryDead,
  deleteDead: queues.deleteDead,
  audit: overview.audit,
}

interface Route {
  readonly name: EndpointName
  readonly endpoint: Endpoint
  readonly pattern: RegExp
}

const routes = Object.entries<Endpoint>(endpoints).flatMap(([name, endpoint]): Route[] => {
  const pattern = new RegExp(`^${endpoint.path.replace(/\{(\w+)\}/g, '(?<$1>[^/]+)')}$`)
  return isName(name) ? [{ name, endpoint, pattern }] : []
})

function isName(name: string): name is EndpointName {
  return Object.hasOwn(answering, name)
}

/** Maximum size of a body, and maximum time (ms) to receive it. */
const maxBodyBytes = 65_536
const bodyTimeoutMs = 10_000

/**
 * Answers an API request.
 * @param path under `api/v1/`
 * @throws ApiError with the reason for a refusal
 */
export async function answer(
  admin: Admin,
  path: string,
  { request, who }: { readonly request: HandlerRequest; readonly who: Granted },
): Promise<HandlerResponse> {
  const method = request.method === 'HEAD' ? 'GET' : request.method
  const found = routes.filter(({ pattern }) => pattern.test(path))
  if (found.length === 0)
    throw new ApiError(404, 'There is no such operation; openapi.json lists them.')
  const route = found.find(({ endpoint }) => endpoint.method === method)
  if (!route) {
    const allowed = found.map(({ endpoint }) => endpoint.method).join(', ')
    throw new ApiError(405, `Use ${allowed}.`, { headers: { Allow: allowed } })
  }
  const { name, endpoint, pattern } = route
  if (!who.may.includes(endpoint.role)) {
    throw new ApiError(403, `This needs the role ${endpoint.role}.`)
  }
  const query = readQuery(request.query, endpoint.query)
  const number = endpoint.ifMatch ? numberOf(request) : undefined
  const body = endpoint.body && (await readJson(request, endpoint.body))
  const groups = pattern.exec(path)?.groups ?? {}
  const parts = Object.fromEntries(
    Object.entries(groups).map(([part, text]) => [part, decoded(text)]),
  )
  const answered = await answering[name]({ admin, who, query, body, number, path: parts })
  return responseOf(answered, request, endpoint)
}

function responseOf(
  answer: object,
  request: HandlerRequest,
  { method }: Endpoint,
): HandlerResponse {
  const headers = { 'Content-Type': 'application/json', 'Cache-Control': 'private, no-cache' }
  const text = JSON.stringify(answer)
  if (method === 'POST') {
    return { status: 200, headers: { ...headers, 'Cache-Control': 'no-store' }, body: text }
  }
  const ETag = etagOf(answer)
  const known = (request.header('if-none-match') ?? '').split(',').map((each) => each.trim())
  if (known.some((each) => each.replace(/^W\//, '') === ETag || each === '*')) {
    return { status: 304, headers: { ETag, 'Cache-Control': headers['Cache-Control'] } }
  }
  return { status: 200, headers: { ...headers, ETag }, body: text }
}

/** Starts with the version, if there is one, for `If-Match`. */
function etagOf(answer: object): string {
  // A new time alone is not a change.
  const text = JSON.stringify({ ...answer, at: undefined })
  const version = 'version' in answer && 'number' in answer ? `${answer.version}:` : ''
  const digest = createHash('sha256').update(text).digest('base64url').slice(0, 16)
  return `"${version}${digest}"`
}

/** Returns the revision of the changes in the version that a change is based on. */
function numberOf(request: HandlerRequest): number {
  const ifMatch = request.header('if-match')
  const [, number] = /^(?:W\/)?"[\w.-]*\.(\d{1,15})(?::[\w-]*)?"$/.exec(ifMatch?.trim() ?? '') ?? []
  if (number !== undefined) return Number(number)
  if (ifMatch !== undefined) {
    throw new ApiError(
      400,
      'If-Match must be the ETag of GET policies, or its version in double quotes.',
    )
  }
  throw new ApiError(
    428,
    'Send If-Match with the ETag of GET policies, so that you do not overwrite another change.',
  )
}

function readQuery(query: URLSearchParams, schema: TObject | undefined): object {
  const fields: Record<string, unknown> = Object.create(null)
  for (const [name, text] of query) {
    if (name in fields) throw new ApiError(400, `The query has ${name} twice.`)
    const kind = schema?.properties[name]
    fields[name] =
      kind && TypeGuard.IsInteger(kind) && /^\d{1,15}$/.test(text) ? Number(text) : text
  }
  const values = { ...fields }
  if (schema) check(schema, values, 'query')
  else if (Object.keys(values).length > 0) throw new ApiError(400, 'This operation takes no query.')
  return values
}

async function readJson(request: HandlerRequest, schema: TObject): Promise<unknown> {
  const [mediaType = ''] = (request.header('content-type') ?? '').toLowerCase().split(';')
  if (mediaType.trim() !== 'application/json') {
    throw new ApiError(415, 'Send a body of the media type application/json.')
  }
  const body = await readBody(request, maxBodyBytes, bodyTimeoutMs).catch((): never => {
    throw new ApiError(408, 'The body came too late.', { headers: { Connection: 'close' } })
  })
  if (body.outcome === 'too-large') {
    throw new ApiError(413, `The body may have at most ${maxBodyBytes} bytes.`, {
      headers: { Connection: 'close' },
    })
  }
  if (body.outcome === 'encoded') throw new ApiError(415, 'Content-Encoding is not supported.')
  if (body.outcome !== 'read' || body.encoding) throw new ApiError(400, 'The body is not JSON.')
  check(schema, body.value, 'body')
  if ('reason' in schema.properties && !isNoteText(Reflect.get(Object(body.value), 'reason')))
    throw new ApiError(400, `body.reason: Expected ${reason.title}.`)
  return body.value
}

/** @throws ApiError that names the first invalid place */
function check(schema: TSchema, value: unknown, where: string): void {
  if (Value.Check(schema, value)) return
  const [fault] = [...Value.Errors(schema, value)]
  const place = `${where}${(fault?.path ?? '').replaceAll('/', '.')}`
  const title = fault?.schema.title
  const legal = title === undefined ? (fault?.message ?? 'Not valid') : `Expected ${title}`
  throw new ApiError(400, `${onOneLine(place).slice(0, 200)}: ${legal}.`)
}

function decoded(text: string | undefined): string {
  try {
    return decodeURIComponent(text ?? '')
  } catch {
    throw new ApiError(400, 'The path is not a valid URL.')
  }
}
