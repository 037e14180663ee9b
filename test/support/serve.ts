import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'

export interface Served extends AsyncDisposable {
  readonly port: number
  /** With a slash at its end. */
  readonly url: string
  /** Ends the server with its connections, and waits until it is gone. */
  close(): Promise<void>
}

/** Listens on a free port of 127.0.0.1. */
export async function serve(handler: RequestListener): Promise<Served> {
  const server = createServer(handler).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (typeof address !== 'object' || address === null) throw new Error('the server has no port')
  const { port } = address
  const close = async (): Promise<void> => {
    server.close()
    server.closeAllConnections()
    await once(server, 'close')
  }
  return { port, url: `http://127.0.0.1:${port}/`, close, [Symbol.asyncDispose]: close }
}
