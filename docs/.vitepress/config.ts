import { defineConfig } from 'vitepress'
import llmstxt from 'vitepress-plugin-llms'
import { findDeadLinks } from './dead-links.ts'
import { finishTwins } from './markdown-twins.ts'
import { home, linkRepository, repository } from './repository.ts'
import { nav, sidebar } from './sidebar.ts'
import { expandTabs } from './tabs/expand-tabs.ts'

const slugify = (heading: string): string =>
  heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replace(/\s/g, '-')

const markdownPages = {
  ignoreFiles: ['api/**'],
  excludeIndexPage: false,
  generateLLMsFullTxt: false,
  domain: home.origin,
}

export default defineConfig({
  title: 'Sluice',
  base: home.pathname,
  description: 'Exact, fast and honest rate limiting for Node HTTP APIs',
  lastUpdated: false,
  srcExclude: ['README.md', 'performance/**', 'images/**'],
  head: [['meta', { name: 'color-scheme', content: 'light dark' }]],
  // As GitHub writes anchors, so that the links of the pages hold in both.
  markdown: {
    config(markdown) {
      linkRepository(markdown)
      markdown.core.ruler.before('normalize', 'tabs', (state) => {
        state.src = expandTabs(state.src)
      })
    },
    anchor: { slugify },
    theme: { light: 'github-light-high-contrast', dark: 'github-dark' },
  },
  themeConfig: {
    logo: '/mark.svg',
    nav,
    sidebar,
    outline: [2, 3],
    search: {
      provider: 'local',
      options: {
        // Guides stand above the pages that are written from the types.
        miniSearch: {
          searchOptions: { boostDocument: (page) => (page.includes('/api/') ? 0.1 : 1) },
        },
      },
    },
    socialLinks: [{ icon: 'github', link: repository }],
    editLink: { pattern: `${repository}/edit/main/docs/:path`, text: 'Edit this page' },
    footer: { message: 'MIT licence' },
  },
  vite: {
    // The playground runs the sources of the packages.
    resolve: { conditions: ['@sluice/source'] },
    // The search index is one file.
    build: { chunkSizeWarningLimit: 5_000, target: 'es2022' },
    // llms.txt, and every page as Markdown, without the pages that are written from the types.
    // @ts-expect-error it is typed by another version of Vite than that of VitePress
    plugins: [llmstxt(markdownPages)],
  },
  buildEnd({ srcDir, outDir }) {
    finishTwins(srcDir, outDir)
    findDeadLinks(outDir, home.pathname)
  },
})
