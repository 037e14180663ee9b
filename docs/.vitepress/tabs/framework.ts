/**
 * The code of a task in a framework. It gets the block of the page: `const limit = rateLimit({ … })`,
 * or the body of a test. `{ … }` in an import stands for the names that the code uses.
 */
export type Shell = (block: string) => string

/** What a page can ask for: `tabs=login` on a block. */
export type Task = 'user' | 'login' | 'plans' | 'upload' | 'proxy' | 'test'

export interface Framework {
  /** Title of the tab. */
  readonly title: string
  readonly shells: Readonly<Record<Task, Shell>>
}

/** The options of a block, without the call around them. */
export function optionsOf(block: string): string {
  return block.slice(block.indexOf('{'), block.lastIndexOf('}') + 1)
}

/** Who sends which key, and the plan. */
export const users = `type User = { id: string; plan: string }

/** Your database. */
const users = new Map<string, User>([
  ['key-of-ada', { id: 'ada', plan: 'free' }],
  ['key-of-bob', { id: 'bob', plan: 'pro' }],
])`

export const logins = `/** Your password check. */
async function isRight(login: unknown): Promise<boolean> {
  return Object(login).password === 'correct horse battery staple'
}

/** Normalises the name of the account. */
function accountOf(login: unknown): string | undefined {
  const { name } = Object(login)
  return typeof name === 'string' ? name.trim().toLowerCase() : undefined
}`

export const uploads = `/** Your storage. */
async function save(upload: Iterable<Uint8Array> | AsyncIterable<Uint8Array>) {
  let saved = 0
  for await (const chunk of upload) saved += chunk.length
  return saved
}`

/** For frameworks on Node's own requests. */
export const forward = `const upstream = process.env.UPSTREAM ?? 'http://localhost:4000'

/** Your proxy: sends a request on, with the client's address. */
function forward(incoming: IncomingMessage, address = ''): Promise<IncomingMessage> {
  const { method, url: path, headers } = incoming
  const sent = request(upstream, {
    method,
    path,
    headers: { ...headers, 'x-forwarded-for': address },
  })
  return new Promise((resolve, reject) => {
    incoming.pipe(sent).once('response', resolve).once('error', reject)
  })
}`
