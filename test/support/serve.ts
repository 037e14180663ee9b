import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'

export type Served = Awaited<ReturnType<typeof serve>>

/** Listens on 127.0.0.1. @param wanted the port @default wanted a free one @returns its URL with a slash at its end */
export async function serve(handler: RequestListener, wanted = 0) {
  const server = createServer(handler).listen(wanted, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  /** Ends the server with its connections, and waits until it is gone. */
  const close = async (): Promise<void> => {
    server.close()
    server.closeAllConnections()
    await once(server, 'close')
  }
  return { server, port, url: `http://127.0.0.1:${port}/`, close, [Symbol.asyncDispose]: close }
}
