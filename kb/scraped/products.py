"""The names of widely used projects. Where a page states no project, a name from this list is taken."""

from __future__ import annotations

__all__ = ["PRODUCTS", "PRODUCT_OF", "SPACED"]

PRODUCTS = frozenset(
    (
        "accelerate Airflow Angular Ansible AnythingLLM Apache APISIX Argo ArgoCD Astro AutoGen AutoGPTQ Axolotl "
        "Azkaban Babel Bazel BERT Bert-VITS2 bitsandbytes Buildah Bun Caddy Calico Canal CANN Cassandra Celery Ceph "
        "cert-manager ChatGLM ChatTTS Cilium ClickHouse CMake CockroachDB CocoaPods CogVideo Colossal-AI ColossalAI "
        "ComfyUI Composer Conda Consul containerd CoreDNS CosyVoice CrewAI Crossplane CUDA-Python Cypress Dagster "
        "Dask Datasets dbt Debezium DeepSpeed Deno Detectron2 Diffusers Dify Django Docker Docusaurus "
        "DolphinScheduler Doris Drone Dubbo DuckDB ECharts ElasticSearch Elasticsearch Electron Envoy esbuild "
        "ESLint ESPnet etcd Expo Express FastAPI FastChat FastGPT FATE FFmpeg Ffmpeg FlagEmbedding Flannel "
        "FlashAttention Flask Flink Flowise Fluentd Flutter Fooocus FunASR Gatsby Git Gitea GitLab Godot GPT-SoVITS "
        "Gradio Gradle Grafana gRPC Gunicorn Hadoop HAProxy Harbor HBase Helm Hibernate Hive Hudi Hugo Iceberg "
        "InfluxDB InternVL InvokeAI Istio Jaeger JAX Jekyll Jellyfin Jenkins Jest Jupyter JupyterLab K3s k3s K8s "
        "k8s Kafka Kaniko Keras Keycloak Kibana Knative kohya_ss Kong KServe KTransformers Kubeflow Kubernetes "
        "KubeSphere Kustomize LangChain Laravel LightGBM LiteLLM LLaMA-Factory llama.cpp LLaMAFactory LlamaIndex "
        "LLaVA LMDeploy lmdeploy LocalAI Logstash Loki Longhorn MariaDB Mattermost Maven Megatron Megatron-LM "
        "Memcached Micronaut Milvus MindIE MindSpore MinerU minikube Minikube MinIO MLflow MMCV MMDetection "
        "ModelArts ModelScope MongoDB Mosquitto ms-swift MSBuild MyBatis MySQL Nacos NCCL NeMo Neo4j NestJS Netty "
        "Next.js Nextcloud Nexus Nginx nginx NGINX Node.js Nomad npm NumPy Nuxt nvm OceanBase Ollama OneAPI ONNX "
        "ONNXRuntime OpenCompass OpenCV openGauss OpenResty OpenRLHF OpenSearch OpenShift OpenSSL OpenTelemetry "
        "OpenVINO OpenWrt Oracle PaddleOCR PaddlePaddle Pandas Patroni peft PEFT Perl PgBouncer pgvector PHP "
        "PHPUnit pip Playwright pnpm Podman Postgres PostgreSQL Prisma Prometheus Proxmox Pulsar Pulumi Puppeteer "
        "PyCharm PyInstaller pytest PyTorch Qdrant Quarkus Qwen RabbitMQ RAGFlow Rails Rancher Ray React Redis "
        "Redux RocketMQ Rollup ROS Rspack RuoYi Rust Samba ScyllaDB Seata Selenium Sentinel Sentry SGLang Shiro "
        "SkyWalking Solr SonarQube Spark Spring SpringBoot SQLAlchemy SQLite Stable-Diffusion StarRocks Storybook "
        "Streamlit Supabase Superset Svelte Swift Tauri Tekton Telegraf Tempo TensorBoard TensorFlow TensorRT "
        "TensorRT-LLM Terraform TGI Thanos TiDB TiKV TimescaleDB tokenizers Tomcat TorchServe Traefik Transformers "
        "transformers Trino Triton TRL trl TypeORM TypeScript Ultralytics Unsloth Vagrant Vault Velero veRL verl "
        "VictoriaMetrics VILA VirtualBox Vite vite vLLM VLM-R1 VMware Vue Vuex Weaviate webpack Webpack WebUI "
        "Whisper whisper.cpp WireGuard WordPress WSL XCode Xcode xFormers XGBoost Xinference XTuner YARN Yarn "
        "YOLOv5 YOLOv8 Zabbix Zookeeper ZooKeeper"
    ).split()
)

# Names of several words: a page that names one of them does not mean its first word alone.
SPACED = (
    "Argo CD", "Argo Workflows", "Docker Compose", "Docker Desktop", "Git LFS", "GitHub Actions", "GitLab Runner",
    "Home Assistant", "Hugging Face", "Open WebUI", "Spring Boot", "Spring Cloud", "Stable Diffusion WebUI",
    "Stable Diffusion", "Visual Studio", "VS Code",
)  # fmt: skip

# a tag is written in any case, and with marks for spaces
PRODUCT_OF = {name.casefold(): name for name in sorted(PRODUCTS, reverse=True)}
PRODUCT_OF |= {name.casefold().replace(" ", mark): name for name in SPACED for mark in (" ", "-", "")}
