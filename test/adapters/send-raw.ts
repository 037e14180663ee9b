import { connect } from 'node:net'
import type { Question } from './ask.ts'

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

/** Sends requests one after the other on one connection, without waiting for answers in between; resolves to their statuses. */
export async function sendPipelined(
  port: number,
  targets: readonly string[],
  { method = 'GET', headers = {} }: Pick<Question, 'method' | 'headers'> = {},
): Promise<number[]> {
  const fields = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  const last = targets.length - 1
  const heads = targets.map((target, index) => {
    const connection = index === last ? 'close' : 'keep-alive'
    return `${method} ${target} HTTP/1.1\r\nHost: h\r\n${fields.join('')}Connection: ${connection}\r\n\r\n`
  })
  const answers = await send(port, heads.join(''))
  return [...answers.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status))
}

function sendOne(port: number, method: string, target: string): Promise<string> {
  const head = `${method} ${target} HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`
  return send(port, head)
}

function send(port: number, text: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(Buffer.from(text, 'latin1')))
    // A server that takes something for no HTTP answers 400, or just hangs up.
    socket.once('error', () => socket.destroy())
    let answers = ''
    socket.on('data', (part) => (answers += part.toString('latin1')))
    socket.once('close', () => resolve(answers))
  })
}
