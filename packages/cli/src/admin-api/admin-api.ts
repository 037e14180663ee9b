import type { Static, TSchema } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { errorText, onOneLine } from '@sluice/core'
import type { Command } from 'commander'
import { CliError, exitCodes } from '../terminal/exit-codes.ts'
import { askSecret, canAsk } from '../terminal/prompt.ts'
import { styleOf } from '../terminal/style.ts'
import type { Terminal } from '../terminal/terminal.ts'

export interface FleetOptions {
  readonly url?: string
  readonly json?: true
}

export function fleetOptions(command: Command): Command {
  return command
    .option('--url <url>', 'URL where @sluice/admin is mounted (default: SLUICE_ADMIN_URL)')
    .option('--json', 'print the answer as JSON')
}

export const fleetNotes = `The address is --url or SLUICE_ADMIN_URL. The token is in SLUICE_ADMIN_TOKEN, and is sent as
Authorization: Bearer. If the API refuses a request without a token, the command prompts for it on a terminal.`

interface Asked<Answer extends TSchema> {
  readonly answer: Answer
  /** Makes it a POST. */
  readonly body?: object
  readonly ifMatch?: string | undefined
}

export interface Answered<Answer extends TSchema> {
  readonly body: Static<Answer>
  readonly etag: string | undefined
}

const timeoutMs = 10_000
/** Maximum size of an answer, in bytes. */
const maxLength = 16_000_000

/** The admin API of a fleet. The token determines the roles. */
export class AdminApi {
  readonly #terminal: Terminal
  readonly #base: URL
  #token: string | undefined

  /** @throws CliError without an address, or for an invalid one */
  constructor(terminal: Terminal, { url }: FleetOptions) {
    const { SLUICE_ADMIN_URL, SLUICE_ADMIN_TOKEN } = terminal.env
    this.#terminal = terminal
    this.#base = baseOf(url ?? (SLUICE_ADMIN_URL || undefined))
    this.#token = SLUICE_ADMIN_TOKEN || undefined
    if (this.#token !== undefined) this.#checkToken(this.#token)
  }

  get host(): string {
    return this.#base.host
  }

  /**
   * Calls one operation. If it is refused without a token, asks for the token and retries.
   * @param path under `api/v1/`
   * @throws CliError with the API's message
   */
  async ask<Answer extends TSchema>(path: string, asked: Asked<Answer>): Promise<Answered<Answer>> {
    const response = await this.#send(path, asked)
    const isRefused = response.status === 401 || response.status === 403
    if (!isRefused || this.#token !== undefined || !canAsk(this.#terminal)) {
      return read(response, asked.answer, this.#hint(response.status))
    }
    const token = await askSecret(this.#terminal, `Token for ${this.host} (hidden): `)
    this.#checkToken(token)
    this.#token = token
    return read(await this.#send(path, asked), asked.answer)
  }

  async #send(path: string, { body, ifMatch }: Asked<TSchema>): Promise<Received> {
    const headers = new Headers({ Accept: 'application/json', 'X-Sluice-Admin': '1' })
    if (this.#token !== undefined) headers.set('Authorization', `Bearer ${this.#token}`)
    if (body) headers.set('Content-Type', 'application/json')
    if (ifMatch !== undefined) headers.set('If-Match', ifMatch)
    try {
      const response = await fetch(new URL(`api/v1/${path}`, this.#base), {
        method: body ? 'POST' : 'GET',
        headers,
        // A token must not follow a redirect to another host.
        redirect: 'manual',
        signal: AbortSignal.any([this.#terminal.signal, AbortSignal.timeout(timeoutMs)]),
        ...(body && { body: JSON.stringify(body) }),
      })
      const text = await boundedText(response)
      return { status: response.status, headers: response.headers, text, host: this.host }
    } catch (cause) {
      if (this.#terminal.signal.aborted) throw new CliError('Stopped.', exitCodes.failed, { cause })
      const reason = reasonOf(cause)
      throw new CliError(
        `${this.#base.origin} does not answer: ${reason}. Check --url or SLUICE_ADMIN_URL.`,
        exitCodes.failed,
        { cause },
      )
    }
  }

  /** Says where to put the token, if there was none. */
  #hint(status: number): string {
    const isRefused = status === 401 || status === 403
    return isRefused && this.#token === undefined ? ' Set SLUICE_ADMIN_TOKEN.' : ''
  }

  #checkToken(token: string): void {
    if (!/^[\x21-\x7e]+$/.test(token)) {
      throw new CliError('The token must be one word of visible ASCII characters.')
    }
    const { protocol, hostname } = this.#base
    const isLocal = /^(?:localhost|127\.[\d.]+|\[::1\])$/.test(hostname)
    if (protocol === 'https:' || isLocal) return
    const { stderr } = this.#terminal
    const warning = styleOf(stderr, this.#terminal)('yellow', 'warning:')
    stderr.write(`${warning} the token is sent to ${this.host} without TLS: use https://\n`)
  }
}

/** Parses the address of the API. @throws CliError if it cannot be the address of a mount */
function baseOf(text: string | undefined): URL {
  if (text === undefined) {
    throw new CliError(
      'Set --url or SLUICE_ADMIN_URL to the URL where @sluice/admin is mounted, such as https://api.example.com/limits.',
    )
  }
  const url = URL.canParse(text) ? new URL(text) : undefined
  const isHttp = url?.protocol === 'https:' || url?.protocol === 'http:'
  if (!url || !isHttp || url.username !== '' || url.password !== '') {
    throw new CliError(
      'The address of the admin API must be https://host/path, without user and password: put the token in SLUICE_ADMIN_TOKEN.',
    )
  }
  const path = url.pathname.replace(/(?:\/api\/v1)?\/*$/, '/')
  return new URL(path, url.origin)
}

interface Received {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly host: string
}

function read<Answer extends TSchema>(
  { status, headers, text, host }: Received,
  answer: Answer,
  hint = '',
): Answered<Answer> {
  const body = parse(text)
  if (status === 200) {
    if (Value.Check(answer, body)) return { body, etag: headers.get('etag') ?? undefined }
    throw new CliError(
      `${host} did not answer like Sluice's admin API. Use the URL where it is mounted, such as https://api.example.com/limits.`,
    )
  }
  const message = detailOf(body) ?? `${host} answered ${status}.`
  const location = headers.get('location')
  const where = location === null ? '' : ` It redirects to ${onOneLine(location).slice(0, 200)}.`
  const exitCode = status === 409 || status >= 500 ? exitCodes.failed : exitCodes.usage
  throw new CliError(`${message}${where}${hint}`, exitCode)
}

function detailOf(body: unknown): string | undefined {
  if (typeof body !== 'object' || body === null || !('detail' in body)) return undefined
  const { detail } = body
  return typeof detail === 'string' && detail !== '' ? onOneLine(detail).slice(0, 2_000) : undefined
}

/** Returns the body of a response; '' if it is too long. */
async function boundedText({ body }: Response): Promise<string> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of body ?? []) {
    length += chunk.length
    // Leaving the loop closes the connection.
    if (length > maxLength) return ''
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // Not JSON: the caller reports it.
    return undefined
  }
}

function reasonOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined
  if (!(cause instanceof Error)) return errorText(error)
  if (cause.message !== '') return cause.message
  return 'code' in cause ? String(cause.code) : cause.name
}
