import { connect } from 'node:net'

const atOnce = 40

/** Sends requests whose targets are exactly these texts, in Latin-1, as no client would write them; waits until all were answered. */
export async function sendRaw(
  port: number,
  method: string,
  targets: readonly string[],
): Promise<void> {
  for (let i = 0; i < targets.length; i += atOnce) {
    await Promise.all(targets.slice(i, i + atOnce).map((target) => sendOne(port, method, target)))
  }
}

function sendOne(port: number, method: string, target: string): Promise<void> {
  const head = `${method} ${target} HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(Buffer.from(head, 'latin1')))
    // A server that takes something for no HTTP answers 400, or just hangs up.
    socket.resume().once('error', () => socket.destroy())
    socket.once('close', () => resolve())
  })
}
