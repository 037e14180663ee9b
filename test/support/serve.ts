import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Served extends AsyncDisposable {
  readonly port: number
  /** With a slash at its end. */
  readonly url: string
  /** Ends the server with its connections, and waits until it is gone. */
  close(): Promise<void>
}

/** Listens on 127.0.0.1. @param wanted the port @default wanted a free one */
export async function serve(handler: RequestListener, wanted = 0): Promise<Served> {
  const server = createServer(handler).listen(wanted, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const close = async (): Promise<void> => {
    server.close()
    server.closeAllConnections()
    await once(server, 'close')
  }
  return { port, url: `http://127.0.0.1:${port}/`, close, [Symbol.asyncDispose]: close }
}
