import type { Readable } from 'node:stream'
import type { HttpRequest, RequestContent } from '../request/exchange.ts'

/** A body in a form that fits into JSON. */
export type RequestBody =
  | { readonly outcome: 'read'; readonly value: unknown; readonly encoding?: 'base64' }
  | { readonly outcome: 'too-large' | 'malformed' | 'nested' | 'encoded' }

/**
 * Reads the body of a request: the result of a body parser, if one has run, otherwise the stream,
 * up to a maximum length.
 * @param timeoutMs time (ms) after which reading the stream fails. @default no timeout
 */
export async function readBody(
  request: HttpRequest,
  maxBytes: number,
  timeoutMs?: number,
): Promise<RequestBody> {
  const { content } = request
  if (!content) return { outcome: 'read', value: undefined }
  const stream = nodeStream(content)
  if (stream.readableDidRead) return parsedBody(content.parsed, maxBytes)
  if (Number(request.header('content-length') ?? 0) > maxBytes) return { outcome: 'too-large' }
  if (stream.readableEnded) return { outcome: 'read', value: undefined }
  if (stream.destroyed) throw new Error('the connection closed before the body was read')
  const encoding = request.header('content-encoding') ?? 'identity'
  const bytes = await readBytes(stream, maxBytes, timeoutMs)
  if (bytes === 'too-large') return { outcome: bytes }
  if (bytes.length === 0) return { outcome: 'read', value: undefined }
  if (encoding.toLowerCase() !== 'identity') return { outcome: 'encoded' }
  return bodyOf(bytes, request.header('content-type') ?? '')
}

function nodeStream({ stream }: RequestContent): Readable {
  if (typeof stream !== 'function') return stream
  // Not imported: other runtimes have no Node streams.
  return globalThis.process.getBuiltinModule('node:stream').Readable.from(stream())
}

function parsedBody(parsed: unknown, maxBytes: number): RequestBody {
  if (parsed === undefined) return { outcome: 'read', value: undefined }
  if (parsed instanceof Uint8Array) {
    if (parsed.length > maxBytes) return { outcome: 'too-large' }
    return asBase64(Buffer.from(parsed))
  }
  if (isNested(parsed, maxLevels)) return { outcome: 'nested' }
  const text = JSON.stringify(parsed) ?? 'null'
  if (Buffer.byteLength(text) > maxBytes) return { outcome: 'too-large' }
  return { outcome: 'read', value: JSON.parse(text) }
}

function bodyOf(bytes: Buffer, contentType: string): RequestBody {
  const [mediaType = ''] = contentType.toLowerCase().split(';')
  if (/^application\/(?:[\w.+-]+\+)?json\s*$/.test(mediaType)) return fromJson(bytes)
  const isText = /^(?:text\/|application\/x-www-form-urlencoded\s*$)/.test(mediaType)
  const value = isText ? textOf(bytes) : undefined
  return value === undefined ? asBase64(bytes) : { outcome: 'read', value }
}

function fromJson(bytes: Buffer): RequestBody {
  const text = textOf(bytes)
  if (text === undefined) return { outcome: 'malformed' }
  try {
    const value: unknown = JSON.parse(text)
    return isNested(value, maxLevels) ? { outcome: 'nested' } : { outcome: 'read', value }
  } catch {
    // A client error, reported in the response.
    return { outcome: 'malformed' }
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Decodes UTF-8; `undefined` for other bytes, which would become replacement characters. */
function textOf(bytes: Buffer): string | undefined {
  try {
    return utf8.decode(bytes)
  } catch {
    return undefined
  }
}

/** Maximum nesting of lists and objects: `JSON.stringify` needs stack for each level. */
const maxLevels = 500

function isNested(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  return levels === 0 || Object.values(value).some((inner) => isNested(inner, levels - 1))
}

function asBase64(bytes: Buffer): RequestBody {
  return { outcome: 'read', value: bytes.toString('base64'), encoding: 'base64' }
}

/** Reads a stream. Does not destroy one that is too long: the response needs its socket. */
function readBytes(
  stream: Readable,
  maxBytes: number,
  timeoutMs: number | undefined,
): Promise<Buffer | 'too-large'> {
  return new Promise((resolve, reject) => {
    const chunks: Uint8Array[] = []
    let length = 0
    const take = (chunk: Uint8Array): void => {
      length += chunk.length
      if (length <= maxBytes) chunks.push(chunk)
      else settle(() => resolve('too-large'))
    }
    const end = (): void => settle(() => resolve(Buffer.concat(chunks)))
    const fail = (error: Error): void => settle(() => reject(error))
    const close = (): void => fail(new Error('the connection closed before the body arrived'))
    const late = (): void => fail(new Error(`the body did not arrive within ${timeoutMs} ms`))
    const timer = timeoutMs === undefined ? undefined : setTimeout(late, timeoutMs)
    function settle(answer: () => void): void {
      clearTimeout(timer)
      stream.off('data', take).off('end', end).off('error', fail).off('close', close)
      answer()
    }
    stream.on('data', take).on('end', end).on('error', fail).on('close', close)
  })
}
