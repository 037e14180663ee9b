import { processWide } from '@sluice/core'
import { UnderWay, type UnderWayEntry } from '../lifecycle/under-way.ts'
import type { Hold } from '../request/passage.ts'

/** The common part of Node's HTTP/1 and HTTP/2 responses. */
interface EndingResponse {
  readonly statusCode: number
  readonly writableEnded: boolean
  /** True once 'close' was emitted; not available in HTTP/2. */
  readonly closed?: boolean
  once(event: 'finish' | 'close', listener: () => void): unknown
  off(event: 'finish' | 'close', listener: () => void): unknown
}

/** The connection, or the HTTP/2 stream. Serverless platforms may have none, or no events. */
interface ClosingSocket {
  readonly destroyed: boolean
  once?(event: 'close', listener: () => void): unknown
}

/**
 * Settles everything that a request holds as soon as its response ends, normally or not.
 *
 * The response alone is not enough. Two kinds never emit 'close': a pipelined response that has no
 * connection yet, and a response that a WebSocket library created for an upgrade. So this listens
 * to the connection as well.
 */
export function settleAfter(
  response: EndingResponse,
  socket: ClosingSocket | undefined,
  hold: Hold,
): void {
  // No event would follow.
  if (response.closed || socket?.destroyed) {
    hold.abort()
    return
  }
  const open = socket && openOn(socket)
  const entry = { index: -1, settle }

  function settle(): void {
    response.off('finish', settle)
    response.off('close', settle)
    open?.remove(entry)
    if (response.writableEnded) hold.finish(response.statusCode)
    else hold.abort()
  }

  open?.add(entry)
  response.once('finish', settle)
  response.once('close', settle)
}

interface OpenResponse extends UnderWayEntry {
  readonly settle: () => void
}

const openBySocket = processWide(
  '@sluice/http/open-by-socket/2',
  () => new WeakMap<object, UnderWay<OpenResponse>>(),
)

/** Responses to settle when a connection closes: one listener for all pipelined responses. */
function openOn(socket: ClosingSocket): UnderWay<OpenResponse> | undefined {
  const known = openBySocket.get(socket)
  if (known) return known
  if (typeof socket.once !== 'function') return undefined
  const open = new UnderWay<OpenResponse>()
  openBySocket.set(socket, open)
  socket.once('close', () => {
    for (const { settle } of open.entries()) settle()
  })
  return open
}

/** A Node response, which always writes its head through `writeHead`. */
export interface HeadedResponse {
  writeHead: (...args: never[]) => unknown
}

/** Calls `change` with the status just before the head is written: the last chance for changes. */
export function beforeHead(response: HeadedResponse, change: (status: number) => void): void {
  const { writeHead } = response
  response.writeHead = (...args: unknown[]) => {
    response.writeHead = writeHead
    change(Number(args[0]))
    return Reflect.apply(writeHead, response, args)
  }
}
