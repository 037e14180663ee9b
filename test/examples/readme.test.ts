import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freePortPair } from '../support/free-port.ts'
import { until } from '../support/until.ts'
import { readText, root } from '../support/workspace.ts'
import { type RunningExample, startScript } from './start-example.ts'

const readme = readText('README.md')
const blocks = [...readme.matchAll(/^```(\w+)\n(.*?)^```/gms)].map(([, language, text]) => ({
  language,
  text: text ?? '',
}))

let folder: string
let example: RunningExample
let port: number

beforeAll(async () => {
  // Inside the tests' folder, where its imports resolve as a user's do.
  folder = await mkdtemp(join(root, 'test/examples/.readme-'))
  const script = join(folder, 'example.ts')
  await writeFile(script, blocks.find(({ language }) => language === 'ts')?.text ?? '')
  port = await freePortPair()
  example = startScript(script, { PORT: String(port) })
  await reachable(port)
})

afterAll(async () => {
  await example?.stop()
  await rm(folder, { recursive: true })
})

describe('the README', () => {
  it('shows, verbatim, what a client sees of its first example', async () => {
    const seen: string[] = []
    for (let number = 1; number <= 6; number += 1) seen.push(await ask())
    const shown = blocks
      .filter(({ language }) => language === 'http')
      .map(({ text }) => text.trim())
    expect([seen[0], seen[5]].map(withoutInstant)).toEqual(shown.map(withoutInstant))
  })

  it('is 150 lines at most, and its links lead somewhere', () => {
    expect(readme.split('\n').length).toBeLessThanOrEqual(150)
    for (const [, path = ''] of readme.matchAll(/\]\(([^)#]+)\)/g))
      expect(readText(path)).not.toBe('')
  })
})

async function ask(): Promise<string> {
  const { connect } = await import('node:net')
  const socket = connect(port, '127.0.0.1')
  socket.end('GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
  const text = Buffer.concat(await socket.toArray()).toString()
  const [head = '', body] = text.split('\r\n\r\n')
  const lines = head
    .split('\r\n')
    .filter((line) => !/^(Date|ETag|Connection|Keep-Alive):/i.test(line))
  return [...lines, '', body].join('\n')
}

/** The instant of a reset differs from run to run, and nothing else does. */
function withoutInstant(text: string | undefined): string | undefined {
  return text?.replace(/X-RateLimit-Reset: \d{10}/, 'X-RateLimit-Reset: <epoch>')
}

async function reachable(onPort: number): Promise<void> {
  await until('the example of the README listens', async () => {
    const socket = connect(onPort, '127.0.0.1')
    try {
      await once(socket, 'connect')
      return true
    } finally {
      socket.destroy()
    }
  })
}
