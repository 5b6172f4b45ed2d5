"""Here are the names of widely used projects; one is taken for the owner of an issue when nothing states it."""

from __future__ import annotations

__all__ = ["PRODUCTS"]

PRODUCTS = frozenset(
    (
        "accelerate Airflow Cilium Ansible Apache Argo ArgoCD Axolotl Azkaban Bazel BERT Bert-VITS2 Caddy Canal "
        "Cassandra Celery Ceph ChatGLM ChatTTS ClickHouse CMake ComfyUI Composer Conda Consul containerd "
        "CosyVoice CUDA-Python Dask Datasets DeepSpeed Diffusers Dify Django Docker Docusaurus Doris Drone Dubbo "
        "ECharts ElasticSearch Elasticsearch Electron Envoy ESLint etcd Express FastAPI FastChat FATE FFmpeg "
        "Ffmpeg FlagEmbedding Flask Flink Fluentd Flutter Git Gitea GitLab GPT-SoVITS Gradio Gradle Grafana gRPC "
        "Gunicorn Hadoop HAProxy Harbor HBase Helm Hive Hudi Hugo Iceberg InfluxDB InternVL Istio Jaeger JAX "
        "Jekyll Jenkins Jest Jupyter JupyterLab K3s k3s K8s k8s Kafka Keras Keycloak Kibana kohya_ss Kong "
        "Kubernetes KubeSphere Kustomize LangChain Laravel LightGBM LLaMA-Factory llama.cpp LLaMAFactory "
        "LlamaIndex LMDeploy lmdeploy Logstash Loki Longhorn MariaDB Maven Megatron Megatron-LM Memcached Milvus "
        "MinerU Minikube minikube MinIO MLflow MMDetection ModelArts ModelScope MongoDB Mosquitto ms-swift "
        "MSBuild MyBatis MySQL Nacos NCCL Neo4j Netty Next.js Nexus NGINX Nginx nginx Node.js npm NumPy Nuxt nvm "
        "Ollama ONNX ONNXRuntime OpenCV OpenResty OpenRLHF OpenSearch OpenShift OpenSSL OpenVINO OpenWrt Oracle "
        "PaddleOCR PaddlePaddle Pandas PEFT peft Perl PgBouncer pgvector PHP PHPUnit pip pnpm Podman Postgres "
        "PostgreSQL Prisma Prometheus Proxmox Pulsar PyCharm PyInstaller pytest PyTorch Qdrant Quarkus Qwen "
        "RabbitMQ RAGFlow Rails Ray React Redis Redux RocketMQ ROS RuoYi Rust Samba ScyllaDB Seata Selenium "
        "Sentinel SGLang Shiro SkyWalking Solr Spark Spring SpringBoot SQLAlchemy SQLite Stable-Diffusion "
        "Streamlit Supabase Superset Svelte Swift Tauri Telegraf TensorBoard TensorFlow TensorRT TensorRT-LLM "
        "Terraform Thanos TiDB TiKV tokenizers Tomcat TorchServe Traefik Transformers transformers Triton TRL trl "
        "TypeORM TypeScript Ultralytics Unsloth Vagrant Vault veRL verl VictoriaMetrics VILA VirtualBox Vite vite "
        "vLLM VLM-R1 VMware Vue Vuex Weaviate Webpack webpack WebUI WireGuard WordPress WSL xFormers XGBoost "
        "Xinference XTuner YARN Yarn YOLOv5 YOLOv8 Zabbix ZooKeeper Zookeeper"
    ).split()
)
