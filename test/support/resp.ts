import { connect } from 'node:net'

/** A decoded RESP2 reply; an error inside an array stands as an `Error` value. */
export type Reply = string | number | null | Error | Reply[]

export interface CommandOptions {
  host?: string
  port: number
  /** Milliseconds until the call fails. @default 5000 */
  timeoutMs?: number
}

/**
 * Sends one command over a socket of its own, without any client library, so that tests can look at a server
 * independently of the clients under test.
 */
export function sendCommand(
  args: readonly (string | number | Buffer)[],
  { host = '127.0.0.1', port, timeoutMs = 5000 }: CommandOptions,
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    let received = Buffer.alloc(0)
    const socket = connect({ host, port })
    const fail = (error: Error) => {
      clearTimeout(timer)
      socket.destroy()
      reject(error)
    }
    const timer = setTimeout(() => {
      fail(new Error(`No reply to ${args[0]} from port ${port} within ${timeoutMs} ms`))
    }, timeoutMs)
    socket.on('error', fail)
    socket.on('close', () => fail(new Error(`Port ${port} closed the connection without a reply`)))
    socket.on('data', (chunk) => {
      received = Buffer.concat([received, chunk])
      try {
        const parsed = parseReply(received)
        if (parsed === undefined) return
        if (parsed.value instanceof Error) throw parsed.value
        resolve(parsed.value)
        clearTimeout(timer)
        socket.destroy()
      } catch (error) {
        fail(error instanceof Error ? error : new Error(String(error)))
      }
    })
    socket.write(encodeCommand(args))
  })
}

function encodeCommand(args: readonly (string | number | Buffer)[]): Buffer {
  const parts: Buffer[] = [Buffer.from(`*${args.length}\r\n`)]
  for (const arg of args) {
    const bytes = Buffer.isBuffer(arg) ? arg : Buffer.from(String(arg))
    parts.push(Buffer.from(`$${bytes.length}\r\n`), bytes, Buffer.from('\r\n'))
  }
  return Buffer.concat(parts)
}

/** Reads one reply from `offset`; `undefined` while it is incomplete. */
function parseReply(buffer: Buffer, offset = 0): { value: Reply; next: number } | undefined {
  const lineEnd = buffer.indexOf('\r\n', offset)
  if (lineEnd === -1) return undefined
  const kind = String.fromCharCode(buffer[offset] ?? 0)
  const line = buffer.toString('utf8', offset + 1, lineEnd)
  const body = lineEnd + 2
  switch (kind) {
    case '+':
      return { value: line, next: body }
    case '-':
      return { value: new Error(line), next: body }
    case ':':
      return { value: Number(line), next: body }
    case '$':
      return parseBulk(buffer, body, Number(line))
    case '*':
      return parseArray(buffer, body, Number(line))
    default:
      throw new Error(`Not a RESP2 reply: ${JSON.stringify(kind + line)}`)
  }
}

function parseBulk(buffer: Buffer, body: number, length: number) {
  if (length < 0) return { value: null, next: body }
  const next = body + length + 2
  if (buffer.length < next) return undefined
  return { value: buffer.toString('utf8', body, body + length), next }
}

function parseArray(buffer: Buffer, body: number, length: number) {
  if (length < 0) return { value: null, next: body }
  const value: Reply[] = []
  let next = body
  for (let index = 0; index < length; index++) {
    const item = parseReply(buffer, next)
    if (item === undefined) return undefined
    value.push(item.value)
    next = item.next
  }
  return { value, next }
}
